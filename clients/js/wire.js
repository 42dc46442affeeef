// @ts-check
/**
 * One try: a request as it goes out, and what is seen of it.
 *
 * Guarantee: one call makes one request, follows no redirect (a POST would come out of it as a GET), ends within its time, and reads no
 * more of an answer than the bound. A fault is called `never_sent` only where the platform proves it.
 *
 * @module
 */

import { echoOf, keyField, newKey } from './key.js';
import { namesOf, saysReplay } from './next.js';

/** @typedef {import('./ichido.d.ts').Seen} Seen */
/** @typedef {import('./ichido.d.ts').Outside} Outside */
/** @typedef {import('./ichido.d.ts').Fields} Fields */

/**
 * A request that is the same on every try.
 *
 * @typedef {object} Request
 * @property {string} method
 * @property {string} url
 * @property {string | null} key
 * @property {Fields} headers without credentials
 * @property {Uint8Array | null} body
 */

/**
 * What differs from try to try, and from client to client.
 *
 * @typedef {object} Way
 * @property {number} timeOutMs
 * @property {number} answerBytesMax
 * @property {Fields} fields of this try: credentials, number, hops
 * @property {RequestCredentials} credentials
 * @property {boolean} keepalive
 * @property {AbortSignal | null} signal
 */

/**
 * What was seen, with the answer itself, or with why there is none in words.
 *
 * @typedef {{ seen: Seen, answer: Answer | null, message: string }} Exchange
 */

/** Whether a browser sends cookies; the first is the usual. */
export const CREDENTIALS_MODES = /** @type {const} */ (['same-origin', 'omit', 'include']);

/** What a server answered. */
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

  /** What is wrong, in the server's own words, or by its number. */
  get complaint() {
    const { detail, title } = /** @type {any} */ (this.json()) ?? {};
    const words = [detail, title].find((text) => typeof text === 'string' && text !== '');
    return words ?? `the server answered ${this.status}`;
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
  void outside.wait(way.timeOutMs, settled.signal).then(() => {
    if (settled.signal.aborted) return;
    isLate = true;
    stop();
  });
  try {
    return await fetched(outside, request, way, over.signal);
  } catch (error) {
    return fault(isLate ? 'timeout' : faultOf(error), isLate ? `no answer within ${way.timeOutMs} ms` : wordsOf(error));
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
  const read = await readBody(response, way.answerBytesMax);
  if (read === null) return fault('answer_cut', 'the answer broke off');
  // Scripts are not shown which redirect it was; 300 stands for the class (RFC 9110, section 15).
  const status = response.type === 'opaqueredirect' ? 300 : response.status;
  const answer = new Answer(status, fieldsOf(response), read.body, read.isWhole);
  revealInFlight(response, answer);
  const seen = { status, headers: answer.headers, names: namesOf(status, answer.json()), echo: echoOf(request.key, answer.headers) };
  return { seen: { answer: seen }, answer, message: answer.complaint };
}

/**
 * A copy, because those of a response cannot be changed.
 *
 * @param {Response} response
 */
function fieldsOf(response) {
  return new Headers(response.headers);
}

/**
 * Across origins a page sees `Idempotency-Status` only if the server exposes it. One that forgot must not have its "in flight" taken
 * for an outcome, so the body is asked as well.
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
 * Up to the bound; `null` where it broke off before its end.
 *
 * @param {Response} response
 * @param {number} bytesMax
 * @returns {Promise<{ body: Uint8Array, isWhole: boolean } | null>}
 */
async function readBody(response, bytesMax) {
  if (response.body === null) return { body: new Uint8Array(), isWhole: true };
  const reader = response.body.getReader();
  const body = new Uint8Array(bytesMax);
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return { body: body.slice(0, length), isWhole: true };
      const room = bytesMax - length;
      body.set(value.subarray(0, room), length);
      length += Math.min(value.length, room);
      if (room < value.length) {
        // What is left is not waited for, and nothing depends on how its end ends.
        reader.cancel().catch(() => {});
        return { body, isWhole: false };
      }
    }
  } catch (error) {
    if (/** @type {any} */ (error)?.name === 'AbortError') throw error;
    return null;
  }
}

/** Node says why it could not connect. No browser does: there every fault may have arrived. */
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
  return typeof why === 'string' && why !== '' ? `no answer: ${why}` : 'no answer';
}

/**
 * @param {'never_sent' | 'lost' | 'timeout' | 'answer_cut'} kind
 * @param {string} message
 * @returns {Exchange}
 */
function fault(kind, message) {
  return { seen: { fault: kind }, answer: null, message };
}

// ---------------------------------------------------------------- what goes out

/** Header fields that are not the caller's to set: the key is one and the same everywhere, the others belong to us or to the browser. */
const OURS = new Set(['idempotency-key', 'x-idempotency-key', 'ichido-try', 'ichido-hops', 'content-type', 'content-length', 'host']);
/** They would lie in a database, or in a variable, for longer than they should. */
const CREDENTIALS = new Set(['authorization', 'proxy-authorization', 'cookie', 'x-api-key']);

/**
 * Checks what a caller wants sent, and makes bytes of it.
 *
 * @param {{ method?: string, url: string, body?: unknown, contentType?: string, headers?: Fields }} draft
 * @param {string | undefined} baseUrl
 * @returns {{ method: string, url: string, headers: Fields, body: Uint8Array | null }}
 */
export function requestOf(draft, baseUrl) {
  const method = (draft.method ?? 'POST').toUpperCase();
  if (['GET', 'HEAD', 'OPTIONS', 'TRACE'].includes(method)) {
    throw new TypeError(`${method} changes nothing, so that it needs no key and no care; an action is a POST, PUT, PATCH or DELETE`);
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
    throw new TypeError(`the url ${JSON.stringify(url)} is none, and there is nothing it could follow; give a whole one, or a baseUrl`);
  }
  if (!['http:', 'https:'].includes(absolute.protocol) || absolute.username || absolute.password) {
    throw new TypeError('the url must be http or https, without a user or a password in it');
  }
  return absolute.href;
}

/**
 * @param {Fields} fields
 * @returns {Fields}
 */
export function checkFields(fields) {
  for (const name of Object.keys(fields)) {
    if (OURS.has(name.toLowerCase())) throw new TypeError(`the header field ${name} is set by the client itself; leave it out`);
    if (CREDENTIALS.has(name.toLowerCase())) {
      throw new TypeError(`the header field ${name} is a credential; give it by \`authorize\`, which is asked before each try`);
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
    // Copied: what the caller does with its bytes later must not change a try.
    return [new Uint8Array(body.buffer, body.byteOffset, body.byteLength).slice(), 'application/octet-stream'];
  }
  if (!isPlain(body)) {
    const name = /** @type {any} */ (body).constructor?.name ?? typeof body;
    throw new TypeError(`a ${name} cannot be kept as it is; give a text, bytes, or plain objects and lists, which are written as JSON`);
  }
  const json = JSON.stringify(body);
  if (json === undefined) throw new TypeError('the body is neither a text nor bytes, and cannot be written as JSON');
  return [new TextEncoder().encode(json), 'application/json'];
}

/**
 * Whether JSON says all of it: a Blob, a FormData or a Map would come out as `{}`.
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
 * The fields of one try: `Ichido-Try` (SPEC A14) and `Ichido-Hops` (SPEC F1). Others' APIs get the key alone: a field that a server
 * does not list fails the browser's preflight.
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
  const fields = { 'Ichido-Try': `${number}; ${cause}` };
  if (hop !== null) fields['Ichido-Hops'] = `${hop};t=${Math.max(0, Math.floor(now))};r="${newKey()}"`;
  return fields;
}

/**
 * @param {string[]} problems
 * @param {string | null} hop
 */
export function checkHop(problems, hop) {
  if (hop !== null && !/^[a-z][a-z0-9_.-]{0,31}$/.test(hop)) {
    problems.push(`hop is ${JSON.stringify(hop)}; it has 1 to 32 characters, a lower-case letter first, then also digits, _ - .`);
  }
}
