// @ts-check
// The list: the server's bookmarks, and the saves that wait on this device.

import * as api from './api.js';
import { listenToKeys } from './keys.js';
import { forget, reload, remember, remembered, watchPerson, whoIsHere } from './person.js';
import { addressOf, openQueue, save } from './saves.js';
import { becameOf, isMoving, items, waitingCount, withBookmark } from './state.js';
import { show } from './view.js';
import { languageButton, speak, words } from './words.js';

/** @typedef {import('./ichido/ichido.js').Entry} Entry */
/** @typedef {import('./ichido/ichido.js').Queue} Queue */
/** @typedef {import('./state.js').Step} Step */

/** How often the server is asked while a bookmark is being processed, and otherwise. */
const SOON_MS = 2_000;
const LATER_MS = 20_000;

/** @template {HTMLElement} T @param {string} id */
const at = (id) => /** @type {T} */ (document.getElementById(id));
const list = at('list');
const field = /** @type {HTMLInputElement} */ (at('url'));
const search = /** @type {HTMLInputElement} */ (at('q'));

/** The person this page belongs to, as long as it is open. @type {api.Person} */
let person;
/** The first page of the list, and the bookmarks loaded below it. @type {api.Bookmark[]} */
let bookmarks = [];
/** @type {api.Bookmark[]} */
let further = [];
/** @type {Entry[]} */
let entries = [];
/** Saves made on this page that have no response yet. @type {Set<number>} */
const pressed = new Set();
/** @type {string | null} */
let next = null;
/** The search that the list was read with. */
let q = '';
/** Whether the list was ever read. Before that, an empty list means nothing. */
let isRead = false;
let isReached = true;

const isOnline = () => navigator.onLine && isReached;

function draw() {
  const known = new Set(bookmarks.map((bookmark) => bookmark.id));
  const all = [...bookmarks, ...further.filter((bookmark) => !known.has(bookmark.id))];
  const shown = items(all, entries, { q, isOnline: isOnline() });
  show(list, shown, Date.now());
  at('nothing').hidden = shown.length > 0 || !isRead;
  at('nothing-what').textContent = q ? words().notFound : words().nothing;
  at('nothing-how').textContent = q ? words().notFoundHow : words().nothingHow;
  at('more').hidden = next === null;
  const waiting = waitingCount(entries);
  const lack = isOnline() ? '' : navigator.onLine ? words().unreachable : words().offline;
  const rest = waiting > (isOnline() ? 1 : 0) ? words().toSend(waiting) : '';
  const bar = [lack, rest].filter(Boolean).join(words().gap);
  at('bar').hidden = bar === '';
  if (at('bar').textContent !== bar) at('bar').textContent = bar;
  return shown;
}

/** Shows the result of an action below the field. @param {string} text */
function announce(text) {
  at('said').textContent = text;
  at('hint').textContent = '';
}

/** Shows an error in the same line. @param {string} text */
function complain(text) {
  at('hint').textContent = text;
  at('said').textContent = '';
}

/** Goes to the sign-in page, because nobody is signed in. */
async function toSignIn() {
  await forget();
  location.replace('/sign-in');
}

/** Whether the page no longer belongs to this person. It is then replaced. @param {unknown} error */
function isOver(error) {
  if (error instanceof api.SignedOut) void toSignIn();
  if (error instanceof api.SomebodyElse) reload();
  return error instanceof api.SignedOut || error instanceof api.SomebodyElse;
}

/** The number of the latest read of the list. A response to an earlier one is dropped. */
let reading = 0;

async function read() {
  const mine = ++reading;
  const wanted = search.value.trim();
  try {
    const page = await api.list({ q: wanted });
    if (mine !== reading) return;
    // Bookmarks loaded further down stay as long as the search is the same.
    if (wanted !== q) further = [];
    if (further.length === 0) next = page.next;
    bookmarks = page.bookmarks;
    q = wanted;
    isRead = true;
    isReached = true;
    if (!q) remember(person, bookmarks);
  } catch (error) {
    if (!isOver(error) && mine === reading) isReached = false;
  }
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/** Reads the list now, and again later. A hidden page does not ask. */
async function look() {
  clearTimeout(timer);
  await read();
  const shown = draw();
  if (document.visibilityState === 'visible') timer = setTimeout(look, isMoving(shown) ? SOON_MS : LATER_MS);
}

/** @param {Queue} queue */
async function changed(queue) {
  entries = await queue.list();
  draw();
}

/** @param {Queue} queue */
function listen(queue) {
  queue.subscribe(({ id, entry }) => {
    const became = entry && becameOf(entry);
    if (became && !q) bookmarks = withBookmark(bookmarks, became);
    void changed(queue);
    if (entry?.state !== 'done' && entry?.state !== 'failed') return;
    if (entry.state === 'done' && pressed.delete(id)) showResult(entry, became?.id);
    void look();
  });
  at('add').addEventListener('submit', (event) => {
    event.preventDefault();
    void add(queue);
  });
  list.addEventListener('click', (event) => {
    const button = event.target instanceof Element ? event.target.closest('[data-step]') : null;
    const row = button?.closest('.item');
    if (button && row) void step(queue, row, /** @type {Step} */ (button.getAttribute('data-step')));
  });
  return changed(queue);
}

/** 201 is a new bookmark. 200 is an earlier one, which is scrolled into view. @param {Entry} entry @param {string | undefined} id */
function showResult(entry, id) {
  const isOld = entry.answer?.status === 200;
  announce(isOld ? words().savedBefore : words().saved);
  if (isOld) list.querySelector(`[data-key="bookmark-${CSS.escape(id ?? '')}"]`)?.scrollIntoView({ block: 'nearest' });
}

/** @param {Queue} queue */
async function add(queue) {
  const address = addressOf(field.value);
  complain(field.value.trim() === '' ? words().noAddress : address ? '' : words().badAddress);
  field.setAttribute('aria-invalid', String(address === null));
  if (address === null) return field.focus();
  try {
    pressed.add((await save(queue, address, 'web')).id);
    // Cleared only when the link is stored. Otherwise the person can still copy it.
    if (addressOf(field.value) === address) field.value = '';
    await changed(queue);
    announce(isOnline() ? words().state.saving : words().savedLater);
  } catch (error) {
    complain(error instanceof Error ? error.message : String(error));
  }
}

/** @param {Queue} queue @param {Element} row @param {Step} step */
async function step(queue, row, step) {
  const [from, id] = (row.getAttribute('data-key') ?? '').split(/-(.*)/s);
  if (id === undefined) return;
  try {
    if (from === 'entry') {
      const number = Number(id);
      await (step === 'retry' ? queue.retry(number) : step === 'release' ? queue.release(number) : queue.discard(number));
      entries = await queue.list();
    } else if (step === 'retry') {
      await api.reprocess(id);
    } else {
      if (!confirm(words().removeSure(row.querySelector('.link')?.textContent ?? ''))) return;
      await api.remove(id);
      // A person who uses the keyboard continues at the next row.
      const nearest = /** @type {HTMLElement | null} */ (row.nextElementSibling ?? row.previousElementSibling);
      (nearest ?? field).focus();
      bookmarks = bookmarks.filter((bookmark) => bookmark.id !== id);
      further = further.filter((bookmark) => bookmark.id !== id);
      announce(words().removed);
    }
  } catch (error) {
    if (isOver(error)) return;
    complain(step === 'remove' ? words().removeFailed : words().retryFailed);
  }
  void look();
}

/** Retries saves that were refused while their person was signed out. @param {Queue} queue */
async function sendAgain(queue) {
  for (const { id, canRetry, answer } of entries) {
    if (canRetry && (answer?.status === 401 || answer?.status === 403)) await queue.retry(id);
  }
}

async function signOut() {
  const unsaved = entries.filter(({ state }) => state !== 'done').length;
  if (unsaved > 0 && !confirm(words().signOutSure(unsaved))) return;
  try {
    await api.signOut();
    await toSignIn();
  } catch {
    complain(words().unreachable);
  }
}

async function more() {
  try {
    const page = await api.list({ q, before: next ?? undefined });
    further = [...further, ...page.bookmarks];
    next = page.next;
  } catch (error) {
    if (!isOver(error)) isReached = false;
  }
  draw();
}

function wire() {
  languageButton(at('language'), () => {
    announce('');
    field.removeAttribute('aria-invalid');
    draw();
  });
  at('sign-out').addEventListener('click', () => void signOut());
  at('more').addEventListener('click', () => void more());
  // Some browsers clear the field on Escape and send only `search`.
  for (const event of ['input', 'search']) search.addEventListener(event, () => void look());
  at('find').addEventListener('submit', (event) => event.preventDefault());
  list.addEventListener('click', (event) => {
    const text = event.target instanceof Element ? event.target.closest('.text') : null;
    text?.closest('.item')?.toggleAttribute('data-open');
  });
  listenToKeys(list, field, search);
  for (const event of ['online', 'offline', 'focus']) addEventListener(event, () => void look());
  document.addEventListener('visibilitychange', () => void look());
  const open = `void(open(${JSON.stringify(`${location.origin}/save?from=bookmarklet&url=`)}+encodeURIComponent(location.href)+'&title='+encodeURIComponent(document.title),'_blank','popup,noopener,width=440,height=420'))`;
  at('bookmarklet').setAttribute('href', `javascript:${open}`);
  at('bookmarklet').addEventListener('click', (event) => event.preventDefault());
}

async function start() {
  speak(document);
  const here = await whoIsHere();
  if (here.person === null) return toSignIn();
  person = here.person;
  isReached = here.isReached;
  watchPerson(person);
  at('who').textContent = person.name;
  bookmarks = remembered(person);
  const queue = await openQueue(person, reload);
  wire();
  await listen(queue);
  await sendAgain(queue);
  await look();
  document.documentElement.setAttribute('data-started', '');
  // Without it, the page only opens online. The next visit registers it again.
  await navigator.serviceWorker?.register('/sw.js', { type: 'module' }).catch(() => {});
}

void start();
