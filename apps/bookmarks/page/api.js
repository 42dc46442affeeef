// @ts-check
// Requests to the server, except saving, which goes through the queue (saves.js).

/**
 * @typedef {object} Bookmark as the server shows it
 * @property {string} id
 * @property {string} url
 * @property {string | null} title
 * @property {string | null} summary
 * @property {'model' | 'extract' | null} summary_by
 * @property {'processing' | 'retrying' | 'done' | 'failed'} status
 * @property {string | null} error_code
 * @property {string | null} error_message
 * @property {boolean} can_retry
 * @property {string | null} job_type
 * @property {number | null} [attempt]
 * @property {number | null} [max_attempts]
 * @property {string | null} retry_at
 * @property {string[]} [tags]
 * @property {string | null} [icon]
 * @property {string} created_at
 */

/** @typedef {{ id: string, name: string }} Person */
/** @typedef {{ bookmarks: Bookmark[], next: string | null, total?: number | null }} Listed */
/** @typedef {{ found: number, created: number, existing: number, skipped: number }} Imported */

/** How long the server may take for a small request. After that, it counts as away. */
const PATIENCE_MS = 8_000;

/** Thrown if nobody is signed in. */
export class SignedOut extends Error {}
/** Thrown if another person is signed in than the one who opened this page. */
export class SomebodyElse extends Error {}
/** Thrown if the server refuses a request, with the code of its problem. */
export class Refused extends Error {
  /** @param {string} code */
  constructor(code) {
    super(`the server refused: ${code}`);
    this.code = code;
  }
}

/** Whether a request had no response: the server is away. @param {unknown} error */
export const hadNoResponse = (error) => error instanceof TypeError || error instanceof DOMException;

/**
 * Names the person that a request is for. The cookie may be another person's by now: the server then does nothing and shows nothing.
 * @param {Person} person
 */
export const inNameOf = (person) => ({ 'bookmarks-person': person.id });

/** The header that names the person of this page. @type {Record<string, string>} */
let named = {};

/** @param {Person} person */
export function actAs(person) {
  named = inNameOf(person);
}

/** @param {string} path @param {RequestInit} [init] @param {number} [patience] @returns {Promise<Response>} */
async function ask(path, init = {}, patience = PATIENCE_MS) {
  const given = { credentials: /** @type {const} */ ('same-origin'), redirect: /** @type {const} */ ('error'), signal: AbortSignal.timeout(patience) };
  const answer = await fetch(path, { ...given, ...init, headers: { ...named, ...init.headers } });
  if (answer.status === 401) throw new SignedOut('nobody is signed in');
  if (answer.status === 403 && (await answer.clone().json()).code === 'person_other') throw new SomebodyElse('another person is signed in');
  return answer;
}

/** @param {Response} answer @returns {Promise<Response>} */
async function good(answer) {
  if (answer.ok) return answer;
  const code = await answer.json().then((problem) => problem?.code, () => null);
  if (answer.status < 500 && typeof code === 'string') throw new Refused(code);
  throw new Error(`the server responded with ${answer.status}`);
}

/** @param {string} id */
const pathOf = (id) => `/v1/bookmarks/${encodeURIComponent(id)}`;

/** Returns the person who is signed in, even if another one opened this page. @param {number} [patience] @returns {Promise<Person>} */
export async function me(patience = PATIENCE_MS) {
  const answer = await fetch('/v1/me', { credentials: 'same-origin', redirect: 'error', signal: AbortSignal.timeout(patience) });
  if (answer.status === 401) throw new SignedOut('nobody is signed in');
  return (await good(answer)).json();
}

/**
 * Returns a page of the list. The first page is requested often and seldom changes, so it is revalidated. The copy is kept here and not in the
 * browser's cache, where it would still be after signing out.
 * @param {{ q: string, before?: string | undefined, limit?: number | undefined }} what
 * @returns {Promise<Listed>}
 */
export async function list({ q, before, limit }) {
  const query = new URLSearchParams();
  if (q) query.set('q', q);
  if (before) query.set('before', before);
  if (limit) query.set('limit', String(limit));
  const path = `/v1/bookmarks?${query}`;
  const known = latest?.path === path ? latest : null;
  const answer = await ask(path, { headers: known ? { 'if-none-match': known.tag } : {}, cache: 'no-store' });
  if (known && answer.status === 304) return known.page;
  const page = await (await good(answer)).json();
  if (!before) latest = { path, tag: answer.headers.get('etag') ?? '', page };
  return page;
}

/** The latest first page of the list. @type {{ path: string, tag: string, page: Listed } | null} */
let latest = null;

/** Returns one bookmark, or `null` if it does not exist any more. @param {string} id @returns {Promise<Bookmark | null>} */
export async function one(id) {
  const answer = await ask(pathOf(id), { cache: 'no-store' });
  return answer.status === 404 ? null : (await good(answer)).json();
}

/** @param {string} id */
export async function reprocess(id) {
  await good(await ask(`${pathOf(id)}/reprocess`, { method: 'POST' }));
}

/** @param {string} id @param {{ title: string, tags: string[] }} changes @returns {Promise<Bookmark>} */
export async function edit(id, changes) {
  const init = { method: 'PATCH', body: JSON.stringify(changes), headers: { 'content-type': 'application/json' } };
  return (await good(await ask(pathOf(id), init))).json();
}

/** Deletes a bookmark, even if the page is left meanwhile. @param {string} id */
export async function remove(id) {
  const answer = await ask(pathOf(id), { method: 'DELETE', keepalive: true });
  // A bookmark that does not exist was deleted, perhaps in another tab.
  if (answer.status !== 404) await good(answer);
}

/** The maximum size of a file to import, the same as the server's. */
export const MAX_IMPORT_BYTES = 16 * 1024 * 1024;
/** How long an import may take. */
const IMPORT_PATIENCE_MS = 10 * 60_000;

/** @param {File} file @returns {Promise<Imported>} */
export async function importFile(file) {
  const type = /\.json$/i.test(file.name) || file.type === 'application/json' ? 'application/json' : 'text/html';
  const answer = await ask('/v1/import', { method: 'POST', body: file, headers: { 'content-type': type } }, IMPORT_PATIENCE_MS);
  return (await good(answer)).json();
}

/** @param {string} token @returns {Promise<'in' | 'wrong' | 'too often'>} */
export async function signIn(token) {
  const body = JSON.stringify({ token });
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch('/session', { method: 'POST', body, headers, credentials: 'same-origin' });
  if (answer.status === 401 || answer.status === 400) return 'wrong';
  if (answer.status === 429) return 'too often';
  await good(answer);
  return 'in';
}

export async function signOut() {
  const answer = await fetch('/session', { method: 'DELETE', credentials: 'same-origin' });
  if (answer.status !== 401) await good(answer);
}
