// @ts-check
// The small window of the bookmarklet and of the Share menu.
//
// Guarantee: a window that another site opens saves nothing without a press. The bookmarklet's window saves at once, because it has the
// person's code (bookmarklet.js), and says what it saved, with an undo. The page of the Share menu saves on a press.

import { addressIn, inOrder, readAddress, readable } from './address.js';
import { remove } from './api.js';
import { codeOf } from './bookmarklet.js';
import { toSignIn, watchPerson, whoIsHere } from './person.js';
import { openQueue, save } from './saves.js';
import { becameOf, errorOf } from './state.js';
import { heedPresses } from './press.js';
import { errorText, problemText, speak, words } from './words.js';

/** @typedef {import('./api.js').Person} Person */
/** @typedef {import('./ichido/ichido.js').Entry} Entry */
/** @typedef {import('./ichido/ichido.js').Queue} Queue */

/** How long the result of the bookmarklet is shown before its window closes. */
const CLOSES_AFTER_MS = 4_000;
/** How long the server may take to say who is signed in, and then to respond to the save, before the window says that the link waits. */
const WHO_MS = 1_500;
const AWAY_AFTER_MS = 1_500;

/** @template {HTMLElement} T @param {string} id */
const at = (id) => /** @type {T} */ (document.getElementById(id));

const given = new URLSearchParams(location.search);
// Phones often put the address into the text, or into the title.
const inText = addressIn(given.get('text') ?? '') || addressIn(given.get('title') ?? '');
const { url: address, problem } = readAddress(given.get('url') || inText);
const from = given.get('from') === 'bookmarklet' ? 'bookmarklet' : 'share';
const title = inOrder(given.get('title') ?? '').trim();
const go = /** @type {HTMLButtonElement} */ (at('go'));
let unheed = () => {};

/** This window, to return to after signing in. */
const HERE = location.pathname + location.search + location.hash;

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
  let look = async () => {};
  const away = () => {
    isAway = true;
    void look();
  };
  const queue = await openQueue(person, { away });
  const first = await save(queue, url, from, title);
  go.hidden = true;
  at('close').hidden = from !== 'bookmarklet';
  if (from === 'bookmarklet') at('close').focus();
  queue.subscribe((change) => change.id === first.id && show(change.entry));
  look = async () => show(await queue.get(first.id));
  await look();
  setTimeout(away, AWAY_AFTER_MS);
  at('undo').addEventListener('click', () => void takeBack(queue, first.id));
}

/** Whether the person took the save back, before its response came. */
let isTakenBack = false;
let isShown = false;
/** Whether the end of the save is shown. */
let isEnded = false;
/** Whether the server does not respond, so the save waits. */
let isAway = false;

/** @param {Entry | null} entry */
function show(entry) {
  // An event may be newer than what was read before it.
  if (entry === null || isEnded || (isShown && !isAway && entry.state === 'saving')) return;
  isShown = true;
  const became = becameOf(entry);
  if (isTakenBack) return void (became && removeAgain(became.id));
  const isOld = entry.answer?.status === 200;
  // What was there before is not removed.
  at('undo').hidden = entry.state === 'failed' || (entry.state === 'done' && (isOld || became === null));
  isEnded = entry.state === 'done' || entry.state === 'failed';
  if (entry.state === 'done') return say(isOld ? words().savedBeforeThere : words().saved, true);
  if (entry.state === 'failed') return complain(errorText(errorOf(entry)));
  const isWaiting = isAway || !navigator.onLine || entry.errorMessage !== null;
  say(isWaiting ? words().waiting : words().saving, isWaiting);
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

/** @param {string} url @param {Awaited<ReturnType<typeof whoIsHere>> | null} known */
async function press(url, known) {
  unheed();
  go.disabled = true;
  try {
    // Another person may have signed in since the window was opened. The page is saved for the person who presses.
    const { person, isReached } = known ?? (await whoIsHere(WHO_MS));
    if (person === null) return toSignIn(HERE);
    isAway = !isReached;
    await keep(person, url);
  } catch (error) {
    reportError(error);
    complain(words().notStored);
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
    at('hint').textContent = problem === 'long' || problem === 'credentials' ? problemText(problem) : words().noAddressHere;
    at('what').hidden = true;
    go.hidden = true;
    return;
  }
  const here = await whoIsHere(WHO_MS);
  const { person } = here;
  if (person === null) return toSignIn(HERE);
  at('who').textContent = person.name;
  watchPerson(person);
  at('add').addEventListener('submit', (event) => {
    event.preventDefault();
    void press(address, null);
  });
  if (await isOurs(person)) {
    // A reload saves nothing again.
    history.replaceState(null, '', location.pathname + location.search);
    await press(address, here);
  } else {
    unheed = heedPresses(go, () => go.focus());
  }
  document.documentElement.setAttribute('data-started', '');
}

void start();
