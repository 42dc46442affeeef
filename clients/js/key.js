// @ts-check
/**
 * The idempotency key: it names one action of one person.
 *
 * Guarantee: a key has 1 to 255 visible ASCII characters, and a new key comes from the system's random source.
 *
 * @module
 */

/** The maximum length of a key. */
export const MAX_KEY_LENGTH = 255;

/** @returns {string} */
export function newKey() {
  const source = globalThis.crypto;
  if (typeof source?.getRandomValues !== 'function') {
    throw new Error(
      'cannot create a key: crypto.getRandomValues is missing; in Node 18 import the package `ichido`, which provides it',
    );
  }
  // Only secure contexts have randomUUID.
  if (typeof source.randomUUID === 'function') return source.randomUUID();
  return uuid(source.getRandomValues(new Uint8Array(16)));
}

/**
 * Formats sixteen random bytes as a UUID, version 4.
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
 * Checks a key. The error never contains a character of it.
 *
 * @param {unknown} key
 * @returns {string}
 */
export function checkKey(key) {
  if (typeof key !== 'string' || key === '') {
    throw new TypeError('the key must be a string of 1 to 255 visible ASCII characters; newKey() creates one');
  }
  if (!/^[!-~]+$/.test(key)) {
    throw new TypeError('the key contains a character that is not visible ASCII (! to ~); remove spaces, control characters and accents');
  }
  if (MAX_KEY_LENGTH < key.length) {
    throw new TypeError(`the key has ${key.length} characters; at most ${MAX_KEY_LENGTH} are allowed`);
  }
  return key;
}

/**
 * Formats the key as a header value. Readers parse a value that begins with a quote as a structured-field string, and mostly nothing else.
 *
 * @param {string} key
 */
export function keyField(key) {
  return key.startsWith('"') ? `"${key.replace(/["\\]/g, '\\$&')}"` : key;
}

/**
 * Whether a response echoes our key, under either name of the header. A key that cannot be read is not ours.
 *
 * @param {string | null} key
 * @param {Headers} headers
 * @returns {import('./ichido.d.ts').Echo}
 */
export function echoOf(key, headers) {
  const said = [headers.get('idempotency-key'), headers.get('x-idempotency-key')].filter((value) => value !== null);
  // If no key was sent, a key in the response is not about another action.
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
