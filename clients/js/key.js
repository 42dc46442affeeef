// @ts-check
/**
 * The key: one name for one action of one person (SPEC C1).
 *
 * Guarantee: a key is 1 to 255 visible ASCII characters, and one that is made here comes from the system's own source of randomness.
 *
 * @module
 */

/** The most characters a key may have. */
export const KEY_LENGTH_MAX = 255;

/** @returns {string} */
export function newKey() {
  const source = globalThis.crypto;
  if (typeof source?.getRandomValues !== 'function') {
    throw new Error(
      'there is no source of randomness here (crypto.getRandomValues), and a guessed key is no key; in Node 18 import the package `ichido`, which brings it',
    );
  }
  // Only secure contexts have randomUUID.
  if (typeof source.randomUUID === 'function') return source.randomUUID();
  return uuid(source.getRandomValues(new Uint8Array(16)));
}

/**
 * Sixteen random bytes as a UUID, version 4.
 *
 * @param {Uint8Array} bytes
 */
export function uuid(bytes) {
  const marked = Uint8Array.from(bytes);
  marked[6] = ((marked[6] ?? 0) & 0x0f) | 0x40;
  marked[8] = ((marked[8] ?? 0) & 0x3f) | 0x80;
  const hex = Array.from(marked, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/**
 * Takes a key, or says what is wrong with it; never with a character of it.
 *
 * @param {unknown} key
 * @returns {string}
 */
export function checkKey(key) {
  if (typeof key !== 'string' || key === '') {
    throw new TypeError('the key must be a text of 1 to 255 visible ASCII characters; newKey() makes one');
  }
  if (!/^[!-~]+$/.test(key)) {
    throw new TypeError('the key has a character that is not visible ASCII (! to ~); no spaces, controls or accents');
  }
  if (KEY_LENGTH_MAX < key.length) {
    throw new TypeError(`the key has ${key.length} characters; at most ${KEY_LENGTH_MAX} are allowed`);
  }
  return key;
}

/**
 * The key as a header field's value. Readers take what begins with a quote for a structured-field string, and mostly nothing else.
 *
 * @param {string} key
 */
export function keyField(key) {
  return key.startsWith('"') ? `"${key.replace(/["\\]/g, '\\$&')}"` : key;
}

/**
 * Whether an answer carries our key back, under either name of the header. A key that cannot be read is not ours.
 *
 * @param {string | null} key
 * @param {Headers} headers
 * @returns {import('./ichido.d.ts').Echo}
 */
export function echoOf(key, headers) {
  const said = [headers.get('idempotency-key'), headers.get('x-idempotency-key')].filter((value) => value !== null);
  // Where no key was sent, none that comes back is about another action.
  if (key === null || said.length === 0) return 'absent';
  return said.every((value) => readField(value ?? '') === key) ? 'same' : 'other';
}

/**
 * @param {string} value
 * @returns {string | null}
 */
function readField(value) {
  const trimmed = value.trim();
  if (!trimmed.startsWith('"')) return trimmed;
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(trimmed)?.[1];
  return quoted === undefined ? null : quoted.replace(/\\(["\\])/g, '$1');
}
