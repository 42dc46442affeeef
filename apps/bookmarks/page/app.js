// @ts-check
// The list: the server's bookmarks, and the saves that wait on this device.

import { readAddresses } from './address.js';
import * as api from './api.js';
import { prepareBookmarklets } from './bookmarklet.js';
import { openEditor } from './editor.js';
import { searchOf } from './find.js';
import { listenToKeys } from './keys.js';
import { openHelp, showKeys, wireMenu } from './menu.js';
import { announce, complain, settle, showBottom, showCount } from './messages.js';
import { reload, remember, remembered, toSignIn, watchPerson, whoIsHere } from './person.js';
import { keepPlace, placeHere, rememberSearch, searchHere } from './place.js';
import { Removal } from './removal.js';
import { openQueue, save } from './saves.js';
import { isMoving, Shelf } from './shelf.js';
import { becameOf, isUnanswered, items, waitingCount, wasAway } from './state.js';
import { show, unfold } from './view.js';
import { languageButton, problemText, speak, words } from './words.js';

/** @typedef {import('./ichido/ichido.js').Entry} Entry */
/** @typedef {import('./ichido/ichido.js').Queue} Queue */
/** @typedef {import('./state.js').Step} Step */

/** How often the server is asked while something is about to change, and otherwise. */
const SOON_MS = 2_000;
const LATER_MS = 20_000;
/** How long typing must pause before a search. */
const TYPING_MS = 200;
/** A second press within this time is an impatient finger, not another save. */
const PRESS_AGAIN_MS = 1_500;
/** How often the ages of the rows are brought up to date. */
const AGES_MS = 5_000;
/** How far below the window the next page is loaded. */
const AHEAD = '800px';
/** How many bookmarks below the first page are refreshed at once. */
const MAX_REFRESHED = 10;
const LARGEST_PAGE = 100;

/** @template {HTMLElement} T @param {string} id */
const at = (id) => /** @type {T} */ (document.getElementById(id));
const list = at('list');
const field = /** @type {HTMLInputElement} */ (at('url'));
const search = /** @type {HTMLInputElement} */ (at('q'));

/** The person this page belongs to, as long as it is open. @type {api.Person} */
let person;
/** @type {Shelf} */
let shelf;
/** @type {Queue} */
let queue;
/** @type {Entry[]} */
let entries = [];
/** Saves made on this page that have no response yet. @type {Set<number>} */
const pressed = new Set();
/** When the last save was pressed, and whether the field was edited since. */
let pressedAt = -Infinity;
let isEdited = true;
let isReached = true;
/** Whether a read failed since the last that succeeded. */
let wasUnreached = false;
/** Whether this page loads the next page of the list. */
let isLoading = false;

const isOnline = () => navigator.onLine && isReached;
const wantedSearch = () => search.value.trim();
/** Whether the list is searched on this device, because the server cannot be asked. */
const isLocal = () => !isOnline() && wantedSearch() !== shelf.q;

const removal = new Removal({
  remove: api.remove,
  removed: (id) => shelf.remove(id),
  failed: (removed, error) => {
    if (isOver(error)) return;
    const isAway = api.hadNoResponse(error);
    if (isAway) unreached();
    complain(words().removeFailed(removed[0]?.title ?? '', removed.length), { untilReached: isAway });
    if (isAway) lookIn(SOON_MS);
  },
  changed: () => draw(),
});

function draw() {
  const q = wantedSearch();
  const bookmarks = (isLocal() ? shelf.local(q) : shelf.shown).filter(({ id }) => !removal.hides(id));
  const shown = items(bookmarks, entries, { q, isOnline: isOnline(), pinned: shelf.pinned });
  show(list, shown, Date.now());
  const isEmpty = list.children.length === 0 && (shelf.isRead || isLocal());
  const isWhole = (isLocal() ? q : shelf.q) === '';
  at('nothing').hidden = !isEmpty || !isWhole;
  at('not-found').hidden = !isEmpty || isWhole;
  at('find').hidden = !at('nothing').hidden;
  at('more').hidden = shelf.next === null || isLocal();
  const waiting = entries.filter(({ state }) => state !== 'done').length;
  showCount(shelf, { q, rows: shown.length, isLocal: isLocal(), hidden: removal.open.length, waiting });
  showBottom({ isReached, waiting: waitingCount(entries), removed: removal.open });
}

/** Whether the page no longer belongs to this person. It is then replaced. @param {unknown} error */
function isOver(error) {
  if (error instanceof api.SignedOut) void toSignIn();
  if (error instanceof api.SomebodyElse) reload();
  return error instanceof api.SignedOut || error instanceof api.SomebodyElse;
}

/** The server cannot be reached: a save that was just pressed waits. */
function away() {
  isReached = false;
  // A search shows what it found instead.
  if (pressed.size > 0 && wantedSearch() === '') announce(words().savedLater);
}

/** The server did not respond to a read: the bar says so, and the page asks again soon. */
function unreached() {
  away();
  wasUnreached = true;
}

/** The server responded. What waits because it did not is sent now. */
async function reached() {
  isReached = true;
  if (!wasUnreached) return;
  wasUnreached = false;
  settle();
  for (const entry of entries) if (wasAway(entry)) await queue.retry(entry.id);
  await queue.sendNow();
}

/** The number of the latest read of the list. A response to an earlier one is dropped. */
let reading = 0;

async function read() {
  const mine = ++reading;
  const q = wantedSearch();
  try {
    const page = await api.list({ q });
    if (mine !== reading) return;
    shelf.read(page, q);
    for (const { id } of shelf.movingBelow(Date.now()).slice(0, MAX_REFRESHED)) {
      const fresh = await api.one(id);
      if (fresh === null) shelf.remove(id);
      else shelf.put(fresh);
    }
    if (mine !== reading) return;
    remember(person, shelf.known);
    void reached().catch(reportError);
  } catch (error) {
    if (!isOver(error) && mine === reading) unreached();
  }
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/** Reads the list in this time instead of when it would be read next. @param {number} ms */
function lookIn(ms) {
  clearTimeout(timer);
  timer = setTimeout(look, ms);
}

/** Reads the list now, and again later. A hidden page does not ask. */
async function look() {
  clearTimeout(timer);
  await read();
  draw();
  if (document.visibilityState !== 'visible') return;
  const now = Date.now();
  const isSoon = !isReached || waitingCount(entries) > 0 || shelf.shown.some((bookmark) => isMoving(bookmark, now));
  lookIn(isSoon && navigator.onLine ? SOON_MS : LATER_MS);
}

async function changed() {
  entries = await queue.list();
  draw();
}

function listen() {
  queue.subscribe(({ id, entry }) => {
    const became = entry && becameOf(entry);
    if (became) {
      shelf.put(became, { isNew: true });
      // A person who saves a page again wants to keep it.
      removal.undo(became.id);
    }
    // The read that follows decides whether the server is away: only then is everything sent at once when it is back.
    if (entry && isUnanswered(entry)) away();
    void changed();
    if (entry?.state === 'done' && pressed.delete(id)) showResult(entry, became);
    if (entry && (entry.state === 'done' || entry.state === 'failed' || isUnanswered(entry))) void look();
  });
  return changed();
}

/**
 * 201 is a new bookmark. 200 is an earlier one: it is shown on top, with the field and the message, wherever it is in the list.
 * @param {Entry} entry @param {api.Bookmark | null} became
 */
function showResult(entry, became) {
  const isOld = entry.answer?.status === 200;
  announce(isOld ? words().savedBefore : words().saved);
  if (became === null) return;
  // A search may not find what was just saved.
  if (!isOld && wantedSearch() === '') return;
  shelf.pinned = { bookmark: shelf.get(became.id) ?? became, isOld };
  draw();
  scrollTo({ top: 0 });
}

async function add() {
  const text = field.value;
  const { urls, problem } = readAddresses(text);
  const isAgain = !isEdited && performance.now() - pressedAt < PRESS_AGAIN_MS;
  if (isAgain) return;
  field.setAttribute('aria-invalid', String(problem !== null));
  if (problem !== null) {
    complain(problemText(problem));
    return field.focus();
  }
  isEdited = false;
  pressedAt = performance.now();
  try {
    shelf.pinned = null;
    const ids = [];
    for (const url of urls) ids.push((await save(queue, url, 'web')).id);
    for (const id of ids) pressed.add(id);
    // Cleared only when the links are stored. Otherwise the person can still copy them.
    if (field.value === text) field.value = '';
    await changed();
    // Their results may be here already.
    if (ids.some((id) => pressed.has(id))) announce(isOnline() ? words().saving : words().savedLater);
  } catch (error) {
    reportError(error);
    pressedAt = -Infinity;
    complain(words().notStored);
  }
}

/** Pastes lines with blanks between them: the field would join them. @param {ClipboardEvent} event */
function paste(event) {
  const text = event.clipboardData?.getData('text').trim() ?? '';
  if (!/[\r\n]/.test(text)) return;
  event.preventDefault();
  field.setRangeText(text.replace(/\s*[\r\n]\s*/g, ' '), field.selectionStart ?? 0, field.selectionEnd ?? 0, 'end');
  isEdited = true;
}

/** @param {HTMLElement} row @param {Step} step */
async function step(row, step) {
  const [from, id] = (row.getAttribute('data-key') ?? '').split(/-(.*)/s);
  if (id === undefined) return;
  try {
    if (from === 'entry') {
      const number = Number(id);
      await (step === 'retry' ? queue.retry(number) : step === 'release' ? queue.release(number) : queue.discard(number));
      entries = await queue.list();
    } else if (step === 'retry') {
      await api.reprocess(id);
      announce(words().retried);
    } else if (step === 'edit') {
      const bookmark = shelf.get(id);
      if (bookmark) openEditor(row, bookmark, { saved: edited, failed: isOver });
      return;
    } else {
      // A person who uses the keyboard continues at the next row.
      const nearest = /** @type {HTMLElement | null} */ (row.nextElementSibling ?? row.previousElementSibling);
      (nearest ?? field).focus({ preventScroll: true });
      return removal.begin({ id, title: row.querySelector('.link')?.textContent ?? '' });
    }
  } catch (error) {
    if (isOver(error)) return;
    complain(words().retryFailed, { untilReached: api.hadNoResponse(error) });
  }
  void look();
}

/** @param {api.Bookmark} bookmark */
function edited(bookmark) {
  shelf.put(bookmark);
  announce(words().edited);
  draw();
}

function undo() {
  const back = removal.undo();
  const last = back.at(-1);
  if (last === undefined) return;
  announce(words().restored(back.length));
  const row = /** @type {HTMLElement | null} */ (list.querySelector(`[data-key="bookmark-${CSS.escape(last.id)}"]`));
  row?.focus({ preventScroll: true });
  row?.scrollIntoView({ block: 'nearest' });
}

/** Retries saves that were refused while their person was signed out. */
async function sendAgain() {
  for (const { id, canRetry, answer } of entries) {
    if (canRetry && (answer?.status === 401 || answer?.status === 403)) await queue.retry(id);
  }
}

async function signOut() {
  const unsaved = entries.filter(({ state }) => state !== 'done').length;
  if (unsaved > 0 && !confirm(words().signOutSure(unsaved))) return;
  /** @type {HTMLDialogElement} */ (at('menu')).close();
  try {
    await removal.commit();
    await api.signOut();
    await toSignIn();
  } catch {
    complain(words().unreachable, { untilReached: true });
  }
}

/** Loads the next page of the list. @param {number} [limit] */
async function more(limit) {
  if (isLoading || shelf.next === null) return;
  isLoading = true;
  const { q } = shelf;
  try {
    const page = await api.list({ q, before: shelf.next, limit });
    if (q === shelf.q) shelf.readMore(page);
  } catch (error) {
    if (!isOver(error)) unreached();
  }
  isLoading = false;
  draw();
  watchEnd();
}

const atEnd = new IntersectionObserver((seen) => seen.some(({ isIntersecting }) => isIntersecting) && isOnline() && void more(), { rootMargin: AHEAD });

/** Loads the next page when the end of the list comes near. Begun again after each page, because the observer only reports changes. */
function watchEnd() {
  atEnd.disconnect();
  atEnd.observe(at('more'));
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let typing;

/**
 * What is typed replaces the search in the address; what is clicked can be left with Back.
 * @param {string} q @param {{ isClicked?: boolean }} [how]
 */
async function searchFor(q, { isClicked = false } = {}) {
  if (search.value !== q) search.value = q;
  clearTimeout(typing);
  rememberSearch(wantedSearch(), isClicked ? { y: scrollY, rows: shelf.loaded } : null);
  shelf.pinned = null;
  // The count of what is found takes the place of an earlier result.
  announce('');
  scrollTo({ top: 0 });
  const looked = look();
  // Offline, the result is here at once.
  draw();
  await looked;
}

/** Back or Forward: the search of that entry, and the place in its list. @param {PopStateEvent} event */
async function wentBack({ state }) {
  if (searchHere() === wantedSearch()) return;
  await searchFor(searchHere());
  if (state !== null) await restore(state);
}

/** @param {Event} event */
function pressedIn({ target }) {
  const inside = (/** @type {string} */ what) => (target instanceof Element ? /** @type {HTMLElement | null} */ (target.closest(what)) : null);
  const row = inside('.item');
  const button = inside('[data-step]');
  if (row === null) return;
  if (button) void step(row, /** @type {Step} */ (button.getAttribute('data-step')));
  else if (inside('.tag')) void searchFor(searchOf(inside('.tag')?.getAttribute('data-tag') ?? ''), { isClicked: true });
  else if (inside('.unfold, .reason') || (inside('.text') && !row.querySelector('.unfold[hidden]') && getSelection()?.isCollapsed !== false)) {
    unfold(row);
    draw();
  }
}

function wire() {
  languageButton(at('language'), () => {
    announce('');
    field.removeAttribute('aria-invalid');
    spoken();
    draw();
  });
  at('sign-out').addEventListener('click', () => void signOut());
  at('more').addEventListener('click', () => void more());
  at('undo').addEventListener('click', undo);
  at('open-help').addEventListener('click', openHelp);
  at('send-now').addEventListener('click', async () => {
    await queue.sendNow();
    void look();
  });
  field.addEventListener('input', () => (isEdited = true));
  field.addEventListener('paste', paste);
  at('add').addEventListener('submit', (event) => {
    event.preventDefault();
    void add();
  });
  // Some browsers clear the field on Escape and send only `search`.
  for (const event of ['input', 'search']) {
    search.addEventListener(event, () => {
      clearTimeout(typing);
      typing = setTimeout(() => void searchFor(search.value), TYPING_MS);
    });
  }
  at('find').addEventListener('submit', (event) => {
    event.preventDefault();
    void searchFor(search.value);
  });
  list.addEventListener('click', pressedIn);
  listenToKeys({ list, field, search, undo, help: openHelp });
  wireMenu({ imported: () => void look(), isOver });
  watchEnd();
  for (const event of ['online', 'offline', 'focus']) addEventListener(event, () => void look());
  document.addEventListener('visibilitychange', () => void look());
  addEventListener('popstate', (event) => void wentBack(event));
  setInterval(() => document.visibilityState === 'visible' && draw(), AGES_MS);
}

/** The texts that name the person, or that come as a list. */
function spoken() {
  at('signed-in').textContent = words().signedIn(person.name);
  showKeys();
}

/** Shows the list as it was when this tab was left. @param {{ y: number, rows: number }} place */
async function restore({ y, rows }) {
  while (shelf.loaded < rows && shelf.next !== null && isReached) await more(LARGEST_PAGE);
  if (y > 0) scrollTo({ top: y });
}

async function start() {
  speak(document);
  const here = await whoIsHere();
  if (here.person === null) return toSignIn(location.pathname + location.search);
  person = here.person;
  isReached = here.isReached;
  wasUnreached = !here.isReached;
  watchPerson(person);
  at('who').textContent = person.name;
  shelf = new Shelf(remembered(person));
  search.value = searchHere();
  const place = placeHere();
  queue = await openQueue(person, {
    lost: reload,
    away: () => {
      unreached();
      void look();
    },
  });
  spoken();
  wire();
  await prepareBookmarklets(person, () => (at('bookmarklet-how').textContent = words().bookmarkletNot));
  await listen();
  await sendAgain();
  await look();
  await restore(place);
  keepPlace(() => shelf.loaded);
  document.documentElement.setAttribute('data-started', '');
  // Without it, the page only opens online. The next visit registers it again.
  await navigator.serviceWorker?.register('/sw.js', { type: 'module' }).catch(() => {});
}

void start();
