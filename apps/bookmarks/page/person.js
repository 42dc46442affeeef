// @ts-check
// Who is signed in in this browser, and what is remembered of them here: so that the page opens without a network, as theirs.

import { Queue } from './ichido/ichido.js';
import { actAs, me, SignedOut } from './api.js';
import { QUEUE } from './saves.js';

/** @typedef {import('./api.js').Bookmark} Bookmark */
/** @typedef {import('./api.js').Person} Person */

const PERSON = 'person';
const LIST = 'list';

/** @param {string} name @returns {any} */
function kept(name) {
  try {
    return JSON.parse(localStorage.getItem(name) ?? 'null');
  } catch {
    return null;
  }
}

/**
 * Who is signed in, or nobody; whoever was, where the server is not reached. From here on the page asks in this person's name, and in no other.
 * @returns {Promise<{ person: Person | null, isReached: boolean }>}
 */
export async function whoIsHere() {
  try {
    const person = await me();
    // Somebody else was here, and may not have signed out.
    if (kept(PERSON)?.id !== person.id) await forget();
    localStorage.setItem(PERSON, JSON.stringify(person));
    actAs(person);
    return { person, isReached: true };
  } catch (error) {
    if (error instanceof SignedOut) return { person: null, isReached: true };
    const person = kept(PERSON);
    const isOne = typeof person?.id === 'string' && typeof person?.name === 'string';
    if (isOne) actAs(person);
    return { person: isOne ? person : null, isReached: false };
  }
}

/** Calls `changed` when somebody else has signed in in another tab, or this person has signed out there. @param {Person} person @param {() => void} changed */
export function watchPerson(person, changed) {
  const look = () => kept(PERSON)?.id === person.id || changed();
  addEventListener('storage', look);
  // A page that a browser has kept frozen heard of nothing.
  addEventListener('pageshow', look);
}

/** What somebody had when the list was last read here; it is a copy, and nobody else's to see. @param {Person} person @returns {Bookmark[]} */
export function remembered(person) {
  const list = kept(LIST);
  return list?.id === person.id && Array.isArray(list.bookmarks) ? list.bookmarks : [];
}

/** @param {Person} person @param {Bookmark[]} bookmarks */
export function remember(person, bookmarks) {
  // An answer may come when they have signed out.
  if (kept(PERSON)?.id !== person.id) return;
  try {
    localStorage.setItem(LIST, JSON.stringify({ id: person.id, bookmarks }));
  } catch {
    // There is no room: without a network the page opens with what waits alone.
    localStorage.removeItem(LIST);
  }
}

/** Whoever was signed in here is not any more: nothing of theirs stays readable, but for what is not saved yet. */
export async function forget() {
  localStorage.removeItem(PERSON);
  localStorage.removeItem(LIST);
  // What cannot be forgotten now is forgotten at the next time.
  await Queue.forgetDone({ name: QUEUE }).catch(() => {});
}
