// @ts-check
// The small window of the bookmarklet and of the Share menu.
//
// Guarantee: a window that another site opens saves nothing without a press. The bookmarklet's window saves at once, because it has the
// person's code (bookmarklet.js), and says what it saved, with an undo. The page of the Share menu saves on a press.

import { addressIn, inOrder, readAddress, readable } from './address.js';
import { remove } from './api.js';
import { codeOf } from './bookmarklet.js';
import { forget, watchPerson, whoIsHere } from './person.js';
import { openQueue, save } from './saves.js';
import { becameOf } from './state.js';
import { heedPresses } from './press.js';
import { speak, words } from './words.js';

/** @typedef {import('./api.js').Person} Person */
/** @typedef {import('./ichido/ichido.js').Entry} Entry */
/** @typedef {import('./ichido/ichido.js').Queue} Queue */

/** How long the result of the bookmarklet is shown before its window closes. */
const CLOSES_AFTER_MS = 4_000;

/** @template {HTMLElement} T @param {string} id */
const at = (id) => /** @type {T} */ (document.getElementById(id));

const given = new URLSearchParams(location.search);
// Phones often put the address into the text, or into the title.
const inText = addressIn(given.get('text') ?? '') || addressIn(given.get('title') ?? '');
const { url: address } = readAddress(given.get('url') || inText);
const from = given.get('from') === 'bookmarklet' ? 'bookmarklet' : 'share';
const title = inOrder(given.get('title') ?? '').trim();
const go = /** @type {HTMLButtonElement} */ (at('go'));
let unheed = () => {};

async function toSignIn() {
  await forget();
  sessionStorage.setItem('after-sign-in', location.pathname + location.search + location.hash);
  location.replace('/sign-in');
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let closing;

/** Closes the window; a browser may refuse that. */
function close() {
  window.close();
  at('said').textContent = words().closeIt;
}

/** Closes the window in a while, unless the person does something in it. Only the bookmarklet's window is one of our own. */
function closeSoon() {
  clearTimeout(closing);
  if (from === 'bookmarklet') closing = setTimeout(close, CLOSES_AFTER_MS);
}

/** @param {string} text @param {boolean} [isOver] whether nothing more will happen */
function say(text, isOver = false) {
  at('said').textContent = isOver && from === 'bookmarklet' ? `${text} ${words().closesSoon}` : text;
  at('hint').textContent = '';
  if (isOver) closeSoon();
}

/** @param {string} text */
function complain(text) {
  clearTimeout(closing);
  at('said').textContent = '';
  at('hint').textContent = text;
}

/** @param {Person} person @param {string} url */
async function keep(person, url) {
  const queue = await openQueue(person);
  const first = await save(queue, url, from, title);
  go.hidden = true;
  at('close').hidden = from !== 'bookmarklet';
  if (from === 'bookmarklet') at('close').focus();
  queue.subscribe((change) => change.id === first.id && show(change.entry));
  show(await queue.get(first.id));
  at('undo').addEventListener('click', () => void takeBack(queue, first.id));
}

/** Whether the person took the save back, before its response came. */
let isTakenBack = false;
let isShown = false;

/** @param {Entry | null} entry */
function show(entry) {
  // An event may be newer than what was read before it.
  if (entry === null || (isShown && entry.state === 'saving')) return;
  isShown = true;
  const became = becameOf(entry);
  if (isTakenBack) return void (became && removeAgain(became.id));
  const isOld = entry.answer?.status === 200;
  // What was there before is not removed.
  at('undo').hidden = entry.state === 'failed' || (entry.state === 'done' && (isOld || became === null));
  if (entry.state === 'done') return say(isOld ? words().savedBeforeThere : words().saved, true);
  if (entry.state === 'failed') return complain(entry.errorMessage ?? words().errors.refused);
  const isAway = !navigator.onLine || entry.errorMessage !== null;
  say(isAway ? words().savedLater : words().saving, isAway);
}

/** Undoes the save: what is not sent yet is discarded, what is saved is removed. @param {Queue} queue @param {number} id */
async function takeBack(queue, id) {
  isTakenBack = true;
  at('undo').hidden = true;
  const entry = await queue.get(id);
  const became = entry && becameOf(entry);
  if (became) return removeAgain(became.id);
  try {
    await queue.discard(id);
    say(words().removedHere, true);
  } catch {
    // It is being sent: it is removed when its response is here.
  }
}

/** @param {string} id */
async function removeAgain(id) {
  try {
    await remove(id);
    say(words().removedHere, true);
  } catch {
    complain(words().retryFailed);
  }
}

/** @param {string} url */
async function press(url) {
  unheed();
  go.disabled = true;
  try {
    // Another person may have signed in since the window was opened. The page is saved for the person who presses.
    const { person } = await whoIsHere();
    if (person === null) return toSignIn();
    await keep(person, url);
  } catch (error) {
    complain(error instanceof Error ? error.message : String(error));
    go.hidden = false;
    go.disabled = false;
  }
}

/** Whether the person's own bookmarklet opened this window. @param {Person} person */
async function isOurs(person) {
  const code = from === 'bookmarklet' ? await codeOf(person) : null;
  return code !== null && location.hash === `#${code}`;
}

async function start() {
  speak(document);
  document.title = words().saveThis;
  at('title').textContent = title;
  at('title').hidden = title === '';
  at('host').textContent = address === null ? '' : readable(address);
  at('close').addEventListener('click', close);
  for (const event of ['pointerdown', 'keydown']) addEventListener(event, () => clearTimeout(closing));
  if (address === null) {
    at('hint').textContent = words().noAddressHere;
    at('what').hidden = true;
    go.hidden = true;
    return;
  }
  const { person } = await whoIsHere();
  if (person === null) return toSignIn();
  at('who').textContent = person.name;
  watchPerson(person);
  at('add').addEventListener('submit', (event) => {
    event.preventDefault();
    void press(address);
  });
  if (await isOurs(person)) {
    // A reload saves nothing again.
    history.replaceState(null, '', location.pathname + location.search);
    await press(address);
  } else {
    unheed = heedPresses(go, () => go.focus());
  }
  document.documentElement.setAttribute('data-started', '');
}

void start();
