// @ts-check
// Finds the address of a page in what a person typed, pasted or shared. Pure.

/** What is wrong with a text. @typedef {'none' | 'bad' | 'credentials' | 'long' | 'many'} Problem */

/** The longest address that is saved, the same as the server's. */
const MAX_URL_CHARS = 2_048;
/** How many links of one text are saved. */
export const MAX_AT_ONCE = 20;

const SCHEME = /^[a-z][a-z0-9+.-]*:/i;
/** Ends an address in running text: space, quotes, angle brackets, and the punctuation of Japanese prose. */
const END = /[\s"<>\u3000-\u3002\u3008-\u3011\u3014-\u301f\u30fb\uff01\uff08\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\uff3b\uff3d\uff5b\uff5d\uff5e\u2026\u2018-\u201d]/u;
/** Punctuation that ends a sentence, not an address. */
const TRAILING = /[.,;:!?'*_~\u2019\u2026]$/u;
/** Prose that follows an address without a space: kana after a letter or digit, as in `…/article\u3092\u8aad\u3093\u3060`. */
const ATTACHED = /(?<=[a-z0-9])[\u3041-\u309f]/iu;
/** Prose that follows a name of a host: hosts are ASCII to their end, or not at all. */
const AFTER_HOST = /^(https?:\/\/[a-z0-9.-]+(?::\d+)?)[^\x00-\x7f]/iu;
const PAIRS = /** @type {const} */ ([['(', ')'], ['[', ']'], ['{', '}']]);

/** How often `part` occurs in `text`. @param {string} text @param {string} part */
const count = (text, part) => text.split(part).length - 1;

/** Returns the address without the punctuation and brackets of the sentence around it. @param {string} address */
function bare(address) {
  for (let rest = address; ; ) {
    const last = rest.at(-1) ?? '';
    const isOpen = PAIRS.some(([opens]) => last === opens);
    const isUnbalanced = PAIRS.some(([opens, closes]) => last === closes && count(rest, opens) < count(rest, closes));
    if (!isOpen && !isUnbalanced && !TRAILING.test(rest)) return rest;
    rest = rest.slice(0, -1);
  }
}

/** Returns the first address in running text, or `''`. @param {string} text */
export function addressIn(text) {
  const found = /https?:\/\/[^]*/i.exec(text)?.[0] ?? '';
  const end = found.search(END);
  const whole = end < 0 ? found : found.slice(0, end);
  const host = AFTER_HOST.exec(whole)?.[1];
  if (host !== undefined) return bare(host);
  const path = whole.indexOf('/', 'https://'.length);
  const prose = path < 0 ? -1 : whole.slice(path + 1).search(ATTACHED);
  return bare(prose < 0 ? whole : whole.slice(0, path + 1 + prose));
}

/**
 * Returns the address to save, or what is wrong with the text.
 * @param {string} text @returns {{ url: string, problem: null } | { url: null, problem: Problem }}
 */
export function readAddress(text) {
  const trimmed = text.trim();
  if (trimmed === '') return { url: null, problem: 'none' };
  // People often copy an address without its scheme; a name with a dot is meant as a page. Around an address there may be a sentence.
  const isWhole = SCHEME.test(trimmed) && !END.test(trimmed);
  const given = isWhole ? trimmed : addressIn(trimmed) || `https://${trimmed}`;
  try {
    const url = new URL(given);
    const isPage = (url.protocol === 'https:' || url.protocol === 'http:') && /\S\.\S|^localhost$|^\[/.test(url.hostname);
    if (!isPage) return { url: null, problem: 'bad' };
    if (url.username || url.password) return { url: null, problem: 'credentials' };
    return MAX_URL_CHARS < url.href.length ? { url: null, problem: 'long' } : { url: url.href, problem: null };
  } catch {
    return { url: null, problem: 'bad' };
  }
}

/** Where one address of several begins. */
const BEGINS = new RegExp(`(?<=${END.source})(?=https?://)`, 'iu');

/**
 * Returns every address in a text, or what is wrong with one of them.
 * @param {string} text @returns {{ urls: string[], problem: Problem | null }}
 */
export function readAddresses(text) {
  const parts = text.split(BEGINS).filter((part) => addressIn(part) !== '');
  const read = parts.length < 2 ? [readAddress(text)] : parts.map(readAddress);
  const urls = [...new Set(read.flatMap(({ url }) => url ?? []))];
  const problem = read.find(({ problem }) => problem !== null)?.problem ?? (MAX_AT_ONCE < urls.length ? 'many' : null);
  return { urls: problem === null ? urls : [], problem };
}

/** Characters that reorder the text around them. */
const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Returns a foreign text without the characters that reorder what is around it. @param {string} text */
export const inOrder = (text) => text.replace(BIDI, '');

/** Returns an address as people read it: `日本語`, not `%E6%97%A5…`. @param {string} url */
export function readable(url) {
  try {
    return inOrder(decodeURI(url));
  } catch {
    return url;
  }
}

/**
 * Returns an address as it is searched: without scheme, port and fragment. `null` if a text is not an address.
 * @param {string} text @param {{ isTyped?: boolean }} [how] a typed one may lack the scheme, `www.` and the last slash
 */
export function spotOf(text, { isTyped = false } = {}) {
  const hasScheme = /^https?:\/\//i.test(text);
  try {
    const { hostname, pathname, search } = new URL(hasScheme ? text : `http://${text}`);
    // Without a scheme, only what begins with the name of a host is an address: `1/2` is none, although it could be read as one.
    const isHost = hostname === 'localhost' || (hostname.includes('.') && (hostname.includes('xn--') || text.toLowerCase().startsWith(hostname)));
    if (!hasScheme && !isHost) return null;
    const spot = readable(hostname + pathname + search);
    return isTyped ? spot.replace(/^www\./, '').replace(/\/$/, '') : spot;
  } catch {
    return null;
  }
}

/** Returns the name of the host, without `www.`. @param {string} url */
export function hostOf(url) {
  try {
    return new URL(url).hostname.replace(/^www\./, '');
  } catch {
    return url;
  }
}

/** Returns a short form of the address, shown where there is no title. @param {string} url */
export const shortOf = (url) => readable(url).replace(/^https?:\/\/(www\.)?/, '').replace(/\/$/, '');
