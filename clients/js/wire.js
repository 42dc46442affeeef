// @ts-check
/**
 * One attempt: a request and its result.
 *
 * Guarantee: one call makes one request, follows no redirect (a POST would become a GET), ends within its timeout, and reads no more of
 * a response than the limit. A fault is `never_sent` only if the platform proves it.
 *
 * @module
 */

import { echoOf, keyField, newKey } from './key.js';
import { namesOf, saysReplay } from './next.js';

/** @typedef {import('./ichido.d.ts').Seen} Seen */
/** @typedef {import('./ichido.d.ts').Outside} Outside */
/** @typedef {import('./ichido.d.ts').Fields} Fields */

/**
 * A request that is the same on every attempt.
 *
 * @typedef {object} Request
 * @property {string} method
 * @property {string} url
 * @property {string | null} key
 * @property {Fields} headers without credentials
 * @property {Uint8Array | null} body
 */

/**
 * What differs between attempts and between clients.
 *
 * @typedef {object} Way
 * @property {number} timeoutMs
 * @property {number} maxResponseBytes
 * @property {Fields} fields of this attempt: credentials, number, hops
 * @property {RequestCredentials} credentials
 * @property {boolean} keepalive
 * @property {AbortSignal | null} signal
 */

/**
 * The result, with the response itself or the reason why there is none.
 *
 * @typedef {{ seen: Seen, answer: Answer | null, message: string }} Exchange
 */

/** Whether a browser sends cookies; the first is the default. */
export const CREDENTIALS_MODES = /** @type {const} */ (['same-origin', 'omit', 'include']);

/** A response of the server. */
export class Answer {
  /**
   * @param {number} status
   * @param {Headers} headers
   * @param {Uint8Array} body
   * @param {boolean} isWhole
   */
  constructor(status, headers, body, isWhole) {
    this.status = status;
    this.headers = headers;
    this.body = body;
    this.isWhole = isWhole;
  }

  get isReplay() {
    return saysReplay(this.headers);
  }

  text() {
    return new TextDecoder().decode(this.body);
  }

  /** @returns {unknown} */
  json() {
    try {
      return this.isWhole ? JSON.parse(this.text()) : undefined;
    } catch {
      return undefined;
    }
  }

  /** The error in the server's own words, or its status. */
  get complaint() {
    const { detail, title } = /** @type {any} */ (this.json()) ?? {};
    const words = [detail, title].find((text) => typeof text === 'string' && text !== '');
    return words ?? `the server returned ${this.status}`;
  }
}

/**
 * @param {Outside} outside
 * @param {Request} request
 * @param {Way} way
 * @returns {Promise<Exchange>}
 */
export async function exchange(outside, request, way) {
  const over = new AbortController();
  const settled = new AbortController();
  const stop = () => over.abort();
  way.signal?.addEventListener('abort', stop);
  if (way.signal?.aborted) stop();
  let isLate = false;
  void outside.wait(way.timeoutMs, settled.signal).then(() => {
    if (settled.signal.aborted) return;
    isLate = true;
    stop();
  });
  try {
    return await fetched(outside, request, way, over.signal);
  } catch (error) {
    return fault(isLate ? 'timeout' : faultOf(error), isLate ? `no response within ${way.timeoutMs} ms` : wordsOf(error));
  } finally {
    settled.abort();
    way.signal?.removeEventListener('abort', stop);
  }
}

/**
 * @param {Outside} outside
 * @param {Request} request
 * @param {Way} way
 * @param {AbortSignal} signal
 * @returns {Promise<Exchange>}
 */
async function fetched(outside, request, way, signal) {
  const headers = { ...request.headers, ...way.fields };
  if (request.key !== null) headers['Idempotency-Key'] = keyField(request.key);
  const response = await outside.fetch(request.url, {
    method: request.method,
    headers,
    body: /** @type {BodyInit | null} */ (request.body),
    credentials: way.credentials,
    keepalive: way.keepalive,
    redirect: 'manual',
    cache: 'no-store',
    signal,
  });
  const read = await readBody(response, way.maxResponseBytes);
  if (read === null) return fault('answer_cut', 'the response was incomplete');
  // Scripts cannot see which redirect it was; 300 represents the class (RFC 9110, section 15).
  const status = response.type === 'opaqueredirect' ? 300 : response.status;
  const answer = new Answer(status, fieldsOf(response), read.body, read.isWhole);
  revealInFlight(response, answer);
  const seen = { status, headers: answer.headers, names: namesOf(status, answer.json()), echo: echoOf(request.key, answer.headers) };
  return { seen: { answer: seen }, answer, message: answer.complaint };
}

/**
 * Copies the headers, because those of a response are immutable.
 *
 * @param {Response} response
 */
function fieldsOf(response) {
  return new Headers(response.headers);
}

/**
 * Across origins a page sees `Idempotency-Status` only if the server exposes it. If it does not, "in flight" must not be taken for an
 * outcome, so the body is checked as well.
 *
 * @param {Response} response
 * @param {Answer} answer
 */
function revealInFlight(response, answer) {
  const isHidden = response.type === 'cors' && !answer.headers.has('idempotency-status');
  if (isHidden && answer.status === 202 && /** @type {any} */ (answer.json())?.code === 'key_in_flight') {
    answer.headers.set('idempotency-status', 'processing');
  }
}

/**
 * Reads the body up to the limit. Returns `null` if it is incomplete.
 *
 * @param {Response} response
 * @param {number} maxBytes
 * @returns {Promise<{ body: Uint8Array, isWhole: boolean } | null>}
 */
async function readBody(response, maxBytes) {
  if (response.body === null) return { body: new Uint8Array(), isWhole: true };
  const reader = response.body.getReader();
  const body = new Uint8Array(maxBytes);
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return { body: body.slice(0, length), isWhole: true };
      const room = maxBytes - length;
      body.set(value.subarray(0, room), length);
      length += Math.min(value.length, room);
      if (room < value.length) {
        // The rest is not awaited, and nothing depends on it.
        reader.cancel().catch(() => {});
        return { body, isWhole: false };
      }
    }
  } catch (error) {
    if (/** @type {any} */ (error)?.name === 'AbortError') throw error;
    return null;
  }
}

/** Node says why it could not connect. Browsers do not: there every request may have arrived. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENETUNREACH',
  'EHOSTUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/**
 * @param {unknown} error
 * @returns {'never_sent' | 'lost'}
 */
function faultOf(error) {
  return NEVER_SENT.has(/** @type {any} */ (error)?.cause?.code) ? 'never_sent' : 'lost';
}

/** @param {unknown} error */
function wordsOf(error) {
  const { cause, message } = /** @type {any} */ (error) ?? {};
  const why = cause?.code ?? cause?.message ?? message;
  return typeof why === 'string' && why !== '' ? `no response: ${why}` : 'no response';
}

/**
 * @param {'never_sent' | 'lost' | 'timeout' | 'answer_cut'} kind
 * @param {string} message
 * @returns {Exchange}
 */
function fault(kind, message) {
  return { seen: { fault: kind }, answer: null, message };
}

// ---------------------------------------------------------------- requests

/** Headers that the caller must not set: the client or the browser sets them. */
const OURS = new Set(['idempotency-key', 'x-idempotency-key', 'ichido-attempt', 'ichido-hops', 'content-type', 'content-length', 'host']);
/** They would stay in a database or a variable for too long. */
const CREDENTIALS = new Set(['authorization', 'proxy-authorization', 'cookie', 'x-api-key']);

/**
 * Checks a caller's request and encodes its body.
 *
 * @param {{ method?: string, url: string, body?: unknown, contentType?: string, headers?: Fields }} draft
 * @param {string | undefined} baseUrl
 * @returns {{ method: string, url: string, headers: Fields, body: Uint8Array | null }}
 */
export function requestOf(draft, baseUrl) {
  const method = (draft.method ?? 'POST').toUpperCase();
  if (['GET', 'HEAD', 'OPTIONS', 'TRACE'].includes(method)) {
    throw new TypeError(`${method} changes nothing, so it needs no key; an action is a POST, PUT, PATCH or DELETE`);
  }
  const [body, contentType] = bytesOf(draft.body);
  const fields = { ...checkFields(draft.headers ?? {}) };
  const type = draft.contentType ?? contentType;
  if (type !== null) fields['Content-Type'] = type;
  return { method, url: urlOf(draft.url, baseUrl), headers: fields, body };
}

/**
 * @param {string} url
 * @param {string | undefined} baseUrl
 */
export function urlOf(url, baseUrl) {
  const base = baseUrl ?? globalThis.location?.href;
  let absolute;
  try {
    absolute = new URL(url, base);
  } catch {
    throw new TypeError(`${JSON.stringify(url)} is not an absolute URL, and there is no baseUrl; pass an absolute URL, or set baseUrl`);
  }
  if (!['http:', 'https:'].includes(absolute.protocol) || absolute.username || absolute.password) {
    throw new TypeError('the URL must use http or https and contain no user name or password');
  }
  return absolute.href;
}

/**
 * @param {Fields} fields
 * @returns {Fields}
 */
export function checkFields(fields) {
  for (const name of Object.keys(fields)) {
    if (OURS.has(name.toLowerCase())) throw new TypeError(`the client sets the header ${name} itself; remove it`);
    if (CREDENTIALS.has(name.toLowerCase())) {
      throw new TypeError(`the header ${name} is a credential; return it from \`authorize\`, which is called before each attempt`);
    }
  }
  return fields;
}

/**
 * @param {unknown} body
 * @returns {[Uint8Array | null, string | null]}
 */
function bytesOf(body) {
  if (body === undefined || body === null) return [null, null];
  if (typeof body === 'string') return [new TextEncoder().encode(body), 'text/plain;charset=UTF-8'];
  if (body instanceof ArrayBuffer) return [new Uint8Array(body.slice(0)), 'application/octet-stream'];
  if (ArrayBuffer.isView(body)) {
    // Copied, so later changes by the caller do not change an attempt.
    return [new Uint8Array(body.buffer, body.byteOffset, body.byteLength).slice(), 'application/octet-stream'];
  }
  if (!isPlain(body)) {
    const name = /** @type {any} */ (body).constructor?.name ?? typeof body;
    throw new TypeError(`a ${name} cannot be sent; pass a string, bytes, or plain objects and arrays, which are sent as JSON`);
  }
  const json = JSON.stringify(body);
  if (json === undefined) throw new TypeError('the body is neither a string nor bytes, and cannot be written as JSON');
  return [new TextEncoder().encode(json), 'application/json'];
}

/**
 * Whether JSON can represent it: a Blob, a FormData or a Map would become `{}`.
 *
 * @param {unknown} body
 */
function isPlain(body) {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return true;
  if (typeof (/** @type {any} */ (body).toJSON) === 'function') return true;
  const kind = Object.getPrototypeOf(body);
  return kind === null || Object.getPrototypeOf(kind) === null;
}

/**
 * Builds the headers of one attempt: `Ichido-Attempt` and `Ichido-Hops`. Other servers' APIs get only the key: a header that a server does
 * not allow fails the browser's preflight.
 *
 * @param {import('./ichido.d.ts').Profile} profile
 * @param {number} number
 * @param {import('./ichido.d.ts').Cause} cause
 * @param {string | null} hop
 * @param {number} now
 * @returns {Record<string, string>}
 */
export function tryFields(profile, number, cause, hop, now) {
  if (profile !== 'ichido') return {};
  /** @type {Record<string, string>} */
  const fields = { 'Ichido-Attempt': `${number}; ${cause}` };
  if (hop !== null) fields['Ichido-Hops'] = `${hop};t=${Math.max(0, Math.floor(now))};r="${newKey()}"`;
  return fields;
}

/**
 * @param {string[]} problems
 * @param {string | null} hop
 */
export function checkHop(problems, hop) {
  if (hop !== null && !/^[a-z][a-z0-9_.-]{0,31}$/.test(hop)) {
    problems.push(`hop is ${JSON.stringify(hop)}; it must have 1 to 32 characters: a lowercase letter, then lowercase letters, digits, _ - .`);
  }
}
