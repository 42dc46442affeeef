// @ts-check
// What the page says: the line below the field, and the bottom of the page.

import { language, words } from './words.js';

/** How long the result of an action is shown. */
const ANNOUNCED_MS = 10_000;

/** @param {string} id */
const at = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @param {HTMLElement} element @param {string} text */
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let announced;
/** Whether the error below the field is only true while the server is away. */
let passes = false;

/** Shows the result of an action below the field, for a while. @param {string} text */
export function announce(text) {
  clearTimeout(announced);
  announced = setTimeout(() => announce(''), ANNOUNCED_MS);
  passes = false;
  at('said').textContent = text;
  at('hint').textContent = '';
  at('count').hidden = text !== '';
}

/**
 * Shows an error in the same line, until the next action, or until the server is back.
 * @param {string} text @param {{ untilReached?: boolean }} [how]
 */
export function complain(text, { untilReached = false } = {}) {
  announce('');
  clearTimeout(announced);
  passes = untilReached;
  at('hint').textContent = text;
  at('count').hidden = text !== '';
}

/** The server is back: an error that was only true while it was away is gone. */
export function settle() {
  if (passes) announce('');
}

/**
 * Shows how many bookmarks there are, or were found.
 * @param {import('./shelf.js').Shelf} shelf
 * @param {{ q: string, rows: number, isLocal: boolean, hidden: number, waiting: number }} seen
 *   `hidden`: those that are about to be deleted; `waiting`: saves that are only on this device
 */
export function showCount(shelf, { q, rows, isLocal, hidden, waiting }) {
  const number = (/** @type {number} */ count) => count.toLocaleString(language());
  const total = shelf.total ?? (shelf.isRead && shelf.next === null ? shelf.loaded : null);
  const all = total === null || total === 0 ? '' : words().count(number(total - hidden), total - hidden);
  const found = isLocal ? words().foundHere(number(rows), number(shelf.known.length + waiting)) : words().found(number(rows), shelf.next !== null);
  say(at('count'), q === '' ? all : q === shelf.q || isLocal ? found : '');
  at('count').hidden = at('said').textContent !== '' || at('hint').textContent !== '';
}

/**
 * Shows that the server is away, what waits for it, and what was just deleted.
 * @param {{ isReached: boolean, waiting: number, removed: { title: string }[] }} seen
 */
export function showBottom({ isReached, waiting, removed }) {
  const isOnline = navigator.onLine && isReached;
  const lack = isOnline ? '' : navigator.onLine ? words().unreachable : words().offline;
  const rest = waiting > (isOnline ? 1 : 0) ? words().toSend(waiting) : '';
  const bar = [lack, rest].filter(Boolean).join(words().gap);
  at('bar').hidden = bar === '';
  say(at('bar-text'), bar);
  at('send-now').hidden = waiting === 0 || !navigator.onLine;
  at('toast').hidden = removed.length === 0;
  const [first, ...others] = removed;
  say(at('toast-text'), others.length > 0 ? words().removedMany(removed.length) : first ? words().removed(first.title) : '');
}
