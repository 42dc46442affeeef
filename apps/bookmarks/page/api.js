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
 * @property {string | null} retry_at
 * @property {string} created_at
 */

/** @typedef {{ id: string, name: string }} Person */
/** @typedef {{ bookmarks: Bookmark[], next: string | null }} Listed */

/** Thrown if nobody is signed in. */
export class SignedOut extends Error {}
/** Thrown if another person is signed in than the one who opened this page. */
export class SomebodyElse extends Error {}

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

/** @param {string} path @param {RequestInit} [init] @returns {Promise<Response>} */
async function ask(path, init) {
  const answer = await fetch(path, { credentials: 'same-origin', redirect: 'error', headers: named, ...init });
  if (answer.status === 401) throw new SignedOut('nobody is signed in');
  if (answer.status === 403 && (await answer.clone().json()).code === 'person_other') throw new SomebodyElse('another person is signed in');
  return answer;
}

/** @param {Response} answer @returns {Response} */
function good(answer) {
  if (!answer.ok) throw new Error(`the server responded with ${answer.status}`);
  return answer;
}

/** Returns the person who is signed in, even if another one opened this page. @returns {Promise<Person>} */
export async function me() {
  return good(await ask('/v1/me', { headers: {} })).json();
}

/**
 * Returns a page of the list. The first page is requested often and seldom changes, so it is revalidated. The copy is kept here and not in the
 * browser's cache, where it would still be after signing out.
 * @param {{ q: string, before?: string | undefined }} what
 * @returns {Promise<Listed>}
 */
export async function list({ q, before }) {
  const query = new URLSearchParams();
  if (q) query.set('q', q);
  if (before) query.set('before', before);
  const path = `/v1/bookmarks?${query}`;
  const known = latest?.path === path ? latest : null;
  const answer = await ask(path, { headers: { ...named, ...(known && { 'if-none-match': known.tag }) }, cache: 'no-store' });
  if (known && answer.status === 304) return known.page;
  const page = await good(answer).json();
  latest = { path, tag: answer.headers.get('etag') ?? '', page };
  return page;
}

/** The latest page of the list. @type {{ path: string, tag: string, page: Listed } | null} */
let latest = null;

/** @param {string} id */
export async function reprocess(id) {
  good(await ask(`/v1/bookmarks/${encodeURIComponent(id)}/reprocess`, { method: 'POST' }));
}

/** @param {string} id */
export async function remove(id) {
  const answer = await ask(`/v1/bookmarks/${encodeURIComponent(id)}`, { method: 'DELETE' });
  // A bookmark that does not exist was deleted, perhaps in another tab.
  if (answer.status !== 404) good(answer);
}

/** @param {string} token @returns {Promise<'in' | 'wrong' | 'too often'>} */
export async function signIn(token) {
  const body = JSON.stringify({ token });
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch('/session', { method: 'POST', body, headers, credentials: 'same-origin' });
  if (answer.status === 401 || answer.status === 400) return 'wrong';
  if (answer.status === 429) return 'too often';
  good(answer);
  return 'in';
}

export async function signOut() {
  const answer = await fetch('/session', { method: 'DELETE', credentials: 'same-origin' });
  if (answer.status !== 401) good(answer);
}
