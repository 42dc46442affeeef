// @ts-check
// The person who is signed in in this browser, and the copy of their list that lets the page open offline.

import { Queue } from './ichido/ichido.js';
import { inOrder } from './address.js';
import { actAs, me, SignedOut } from './api.js';
import { QUEUE } from './saves.js';

/** @typedef {import('./api.js').Bookmark} Bookmark */
/** @typedef {import('./api.js').Person} Person */

const PERSON = 'person';
const LIST = 'list';
/** The path on this site to open after signing in. */
export const AFTER = 'after-sign-in';
/** Where the person was in the list, in this tab. */
export const PLACE = 'place';

/** @param {string} name @returns {any} */
function kept(name) {
  try {
    return JSON.parse(localStorage.getItem(name) ?? 'null');
  } catch {
    return null;
  }
}

/**
 * Returns the person who is signed in, or the last known one if the server cannot be reached. From then on the page only acts for them.
 * @param {number} [patience] @returns {Promise<{ person: Person | null, isReached: boolean }>}
 */
export async function whoIsHere(patience) {
  try {
    const person = shown(await me(patience));
    // Another person was signed in here and may not have signed out.
    if (kept(PERSON)?.id !== person.id) await forget();
    localStorage.setItem(PERSON, JSON.stringify(person));
    actAs(person);
    return { person, isReached: true };
  } catch (error) {
    if (error instanceof SignedOut) return { person: null, isReached: true };
    const person = kept(PERSON);
    const isOne = typeof person?.id === 'string' && typeof person?.name === 'string';
    if (isOne) actAs(person);
    return { person: isOne ? shown(person) : null, isReached: false };
  }
}

/** A name from outside, as it can be shown. @param {Person} person @returns {Person} */
const shown = ({ id, name }) => ({ id, name: inOrder(name) });

let isReloading = false;

/** Reloads the page, once: each further call would cancel the load that the one before has begun. */
export function reload() {
  if (isReloading) return;
  isReloading = true;
  location.reload();
}

/** Reloads the page when another person signs in in another tab, or this person signs out there. @param {Person} person */
export function watchPerson(person) {
  const look = () => kept(PERSON)?.id === person.id || reload();
  addEventListener('storage', look);
  // A page that was frozen by the browser has received no events.
  addEventListener('pageshow', look);
}

/** Returns the copy of this person's list. @param {Person} person @returns {Bookmark[]} */
export function remembered(person) {
  const list = kept(LIST);
  return list?.id === person.id && Array.isArray(list.bookmarks) ? list.bookmarks : [];
}

/** How many bookmarks can be seen and searched offline. */
const MAX_REMEMBERED = 300;

/** @param {Person} person @param {Bookmark[]} bookmarks newest first */
export function remember(person, bookmarks) {
  // A response may arrive after they signed out.
  if (kept(PERSON)?.id !== person.id) return;
  try {
    localStorage.setItem(LIST, JSON.stringify({ id: person.id, bookmarks: bookmarks.slice(0, MAX_REMEMBERED) }));
  } catch {
    // The storage is full. Offline, the page then only shows the saves that wait.
    localStorage.removeItem(LIST);
  }
}

/** Goes to the sign-in page, because nobody is signed in, and from there to a path of this site. @param {string} [after] */
export async function toSignIn(after = '/') {
  await forget();
  sessionStorage.setItem(AFTER, after);
  location.replace('/sign-in');
}

/** Deletes the local data of the person who was signed in, except saves that are not sent yet. */
export async function forget() {
  localStorage.removeItem(PERSON);
  localStorage.removeItem(LIST);
  sessionStorage.removeItem(PLACE);
  // If this fails, it is repeated next time.
  await Queue.forgetDone({ name: QUEUE }).catch(() => {});
}
