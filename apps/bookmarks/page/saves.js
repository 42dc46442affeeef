// @ts-check
// Saving: every save goes through the offline queue of the signed-in person. It is stored before it is sent, and takes effect once.

import { Queue } from './ichido/ichido.js';
import { inNameOf, me, SignedOut } from './api.js';
import { intentOf } from './state.js';

/** The name of the queue, the same for all people. */
export const QUEUE = 'bookmarks';
/** The endpoint that saves bookmarks. */
const PATH = '/v1/bookmarks';
/** How long the server keeps keys: 72 h. */
const KEYS_KEPT_MS = 72 * 60 * 60 * 1000;

/** The longest title that is sent with a save. One that is cut says so. */
const MAX_TITLE_CHARS = 300;

/**
 * @param {import('./api.js').Person} person
 * @param {{ lost?: () => void, away?: () => void }} [calls] `lost`: this person is no longer signed in; `away`: the server cannot be reached
 * @returns {Promise<Queue>}
 */
export function openQueue(person, { lost = () => {}, away = () => {} } = {}) {
  return Queue.open({
    identity: person.id,
    name: QUEUE,
    keepsKeysForMs: KEYS_KEPT_MS,
    // The login page of a network returns 200 as well.
    isOurs: (answer) => typeof (/** @type {any} */ (answer.json())?.id) === 'string',
    // The session is a cookie, which the browser adds to every request. Nothing is sent while it is another person's. A request that was
    // sent just before that names its person, so the server refuses it.
    authorize: async () => {
      try {
        if ((await me()).id === person.id) return inNameOf(person);
        lost();
        return null;
      } catch (error) {
        if (!(error instanceof SignedOut)) {
          away();
          throw error;
        }
        lost();
        return null;
      }
    },
  });
}

/**
 * Stores a save in the queue, which sends it. The server detects the kind of page.
 * @param {Queue} queue @param {string} url @param {'web' | 'bookmarklet' | 'share'} from @param {string} [title]
 */
export function save(queue, url, from, title = '') {
  const letters = Array.from(title.trim());
  title = letters.length <= MAX_TITLE_CHARS ? letters.join('') : `${letters.slice(0, MAX_TITLE_CHARS - 1).join('')}…`;
  return queue.enqueue({
    url: PATH,
    body: { url, created_from: from, ...(title && { title }) },
    intent: intentOf(url, from, title),
    cause: 'manual',
  });
}
