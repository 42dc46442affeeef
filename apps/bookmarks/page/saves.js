// @ts-check
// Saving: every save goes through the queue of whoever is signed in, so that it is kept before it is sent, and sent once.

import { Queue } from './ichido/ichido.js';
import { inNameOf, me, SignedOut } from './api.js';
import { intentOf } from './state.js';

/** What the queues of this page are called, whoever's they are. */
export const QUEUE = 'bookmarks';
/** Where bookmarks are made. */
const PATH = '/v1/bookmarks';
/** As long as the server keeps keys: 72 h (SPEC A2). */
const KEYS_KEPT_MS = 72 * 60 * 60 * 1000;

/**
 * @param {import('./api.js').Person} person
 * @param {() => void} [lost] called when it turns out that this person is not signed in any more
 * @returns {Promise<Queue>}
 */
export function openQueue(person, lost = () => {}) {
  return Queue.open({
    identity: person.id,
    name: QUEUE,
    keepsKeysForMs: KEYS_KEPT_MS,
    // A network's login page answers 200 as well.
    isOurs: (answer) => typeof (/** @type {any} */ (answer.json())?.id) === 'string',
    // The session is a cookie, which goes with every request: nothing is sent while it is somebody else's, and what was sent just as it
    // became somebody else's is not done, because it says whose it is.
    authorize: async () => {
      try {
        if ((await me()).id === person.id) return inNameOf(person);
        lost();
        return null;
      } catch (error) {
        if (!(error instanceof SignedOut)) throw error;
        lost();
        return null;
      }
    },
  });
}

/** An address as it is saved, or `null` for what is none. @param {string} text @returns {string | null} */
export function addressOf(text) {
  const trimmed = text.trim();
  // What people copy often lacks the beginning; a name with a dot is meant as a page.
  const given = /^[a-z][a-z0-9+.-]*:/i.test(trimmed) ? trimmed : `https://${trimmed}`;
  try {
    const url = new URL(given);
    const isPage = (url.protocol === 'https:' || url.protocol === 'http:') && /\S\.\S|^localhost$|^\[/.test(url.hostname);
    return isPage && !url.username && !url.password ? url.href : null;
  } catch {
    return null;
  }
}

/** Keeps a page, and has it sent. @param {Queue} queue @param {string} url @param {'page' | 'bookmarklet' | 'share'} hint */
export function save(queue, url, hint) {
  return queue.enqueue({
    url: PATH,
    body: { url, source_hint: hint, created_from: 'web' },
    intent: intentOf(url),
    cause: 'manual',
  });
}
