// @ts-check
// What the server is asked, but for saving, which goes through the queue (saves.js).

/**
 * @typedef {object} Bookmark as the server shows it
 * @property {string} id
 * @property {string} url
 * @property {string | null} title
 * @property {string | null} summary
 * @property {'model' | 'extract' | null} summaryBy
 * @property {'processing' | 'retrying' | 'done' | 'failed'} state
 * @property {string | null} errorCode
 * @property {string | null} errorMessage
 * @property {boolean} canRetry
 * @property {string | null} jobType
 * @property {string | null} retryAt
 * @property {string} createdAt
 */

/** @typedef {{ id: string, name: string }} Person */
/** @typedef {{ bookmarks: Bookmark[], next: string | null }} Listed */

/** Thrown where the server does not know who asks. */
export class SignedOut extends Error {}
/** Thrown where somebody else is signed in than who opened this page. */
export class SomebodyElse extends Error {}

/**
 * Names in a request whose it is. The cookie goes with every request, whoever has signed in since: with this nothing is done or shown
 * unless it is still the same person's.
 * @param {Person} person
 */
export const inNameOf = (person) => ({ 'bookmarks-person': person.id });

/** Whose page this is. @type {Record<string, string>} */
let named = {};

/** @param {Person} person */
export function actAs(person) {
  named = inNameOf(person);
}

/** @param {string} path @param {RequestInit} [init] @returns {Promise<Response>} */
async function ask(path, init) {
  const answer = await fetch(path, { credentials: 'same-origin', redirect: 'error', headers: named, ...init });
  if (answer.status === 401) throw new SignedOut('nobody is signed in');
  if (answer.status === 403 && (await answer.clone().json()).code === 'person_other') throw new SomebodyElse('somebody else is signed in');
  return answer;
}

/** @param {Response} answer @returns {Response} */
function good(answer) {
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  return answer;
}

/** Who is signed in, whoever opened this page. @returns {Promise<Person>} */
export async function me() {
  return good(await ask('/v1/me', { headers: {} })).json();
}

/**
 * A page of the list. The first one is asked for over and over, and mostly has not changed: then it is not sent again. It is kept here, and not
 * by the browser, where it would still be when the person has signed out.
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

/** The page of the list that came last. @type {{ path: string, tag: string, page: Listed } | null} */
let latest = null;

/** @param {string} id */
export async function reprocess(id) {
  good(await ask(`/v1/bookmarks/${encodeURIComponent(id)}/reprocess`, { method: 'POST' }));
}

/** @param {string} id */
export async function remove(id) {
  const answer = await ask(`/v1/bookmarks/${encodeURIComponent(id)}`, { method: 'DELETE' });
  // What is not there any more was deleted, in another tab perhaps.
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
