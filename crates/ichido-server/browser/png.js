// Makes a PNG small: with a palette of at most 256 colours, which is enough for pages without photographs.
import { deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const MAX_COLOURS = 256;

/** Returns the same picture with a palette. */
export function small(png) {
  const { width, height, pixels } = decoded(png);
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const palette = chosen(counts);
  const indexes = new Map(palette.map((colour, index) => [colour, index]));
  for (const colour of counts.keys()) if (!indexes.has(colour)) indexes.set(colour, nearest(palette, colour));
  const rows = Buffer.alloc(height * (width + 1));
  pixels.forEach((pixel, at) => (rows[Math.floor(at / width) * (width + 1) + 1 + (at % width)] = indexes.get(pixel)));
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  return Buffer.concat([SIGNATURE, chunk('IHDR', head), chunk('PLTE', colours), chunk('IDAT', deflateSync(rows, { level: 9 })), chunk('IEND', Buffer.alloc(0))]);
}

/** The colours of the palette: the most frequent one first, then each time the one that is worst served so far. */
function chosen(counts) {
  const rest = [...counts].sort((one, other) => other[1] - one[1]).map(([colour, count]) => ({ colour, weight: Math.sqrt(count), far: Infinity }));
  const palette = [];
  while (palette.length < MAX_COLOURS && rest.length > 0) {
    let worst = 0;
    rest.forEach(({ weight, far }, at) => {
      if (rest[worst].weight * rest[worst].far < weight * far) worst = at;
    });
    const [{ colour, far }] = rest.splice(worst, 1);
    if (far === 0) break;
    palette.push(colour);
    for (const entry of rest) entry.far = Math.min(entry.far, distance(colour, entry.colour));
  }
  return palette;
}

const distance = (one, other) => ((one >> 16) - (other >> 16)) ** 2 + (((one >> 8) & 255) - ((other >> 8) & 255)) ** 2 + ((one & 255) - (other & 255)) ** 2;

const nearest = (palette, colour) => palette.reduce((best, known, at) => (distance(known, colour) < distance(palette[best], colour) ? at : best), 0);

/** Returns the pixels of a PNG of 8 bits a channel, as the browser writes it; transparency is dropped. */
function decoded(png) {
  const data = [];
  for (let at = SIGNATURE.length; at < png.length; at += 12 + png.readUInt32BE(at)) {
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') data.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  }
  const [width, height, channels] = [png.readUInt32BE(16), png.readUInt32BE(20), png[25] === 6 ? 4 : 3];
  const raw = inflateSync(Buffer.concat(data));
  const stride = width * channels;
  const pixels = new Uint32Array(width * height);
  let above = new Uint8Array(stride);
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (stride + 1)];
    const row = Uint8Array.from(raw.subarray(y * (stride + 1) + 1, (y + 1) * (stride + 1)));
    for (let x = 0; x < stride; x++) row[x] += predicted(filter, row[x - channels] ?? 0, above[x], above[x - channels] ?? 0);
    for (let x = 0; x < width; x++) pixels[y * width + x] = (row[x * channels] << 16) | (row[x * channels + 1] << 8) | row[x * channels + 2];
    above = row;
  }
  return { width, height, pixels };
}

/** What a filter adds to a byte, from the bytes to the left, above, and above to the left. */
function predicted(filter, left, up, corner) {
  if (filter === 1) return left;
  if (filter === 2) return up;
  if (filter === 3) return (left + up) >> 1;
  if (filter !== 4) return 0;
  const [byLeft, byUp, byCorner] = [left, up, corner].map((byte) => Math.abs(left + up - corner - byte));
  return byLeft <= byUp && byLeft <= byCorner ? left : byUp <= byCorner ? up : corner;
}

const CRCS = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? 0xedb88320 ^ (byte >>> 1) : byte >>> 1;
  return byte;
});

function chunk(name, data) {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), data]);
  let crc = 0xffffffff;
  for (const byte of body) crc = CRCS[(crc ^ byte) & 255] ^ (crc >>> 8);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  check.writeUInt32BE((crc ^ 0xffffffff) >>> 0);
  return Buffer.concat([length, body, check]);
}
