// @ts-check
// The list: what the server has and what waits here, as it is now.

import * as api from './api.js';
import { addressOf, openQueue, save } from './saves.js';
import { becameOf, isMoving, items, waitingCount, withBookmark } from './state.js';
import { show } from './view.js';
import { languageButton, speak, words } from './words.js';

/** @typedef {import('./ichido/ichido.js').Entry} Entry */

/** How often the server is looked at while something changes by itself, and while nothing does. */
const SOON_MS = 2_000;
const LATER_MS = 20_000;
/** Who was signed in when this browser last heard of it, and what they had: so that the page opens without a network. */
const PERSON = 'person';
const LIST = 'list';

/** @template {HTMLElement} T @param {string} id */
const at = (id) => /** @type {T} */ (document.getElementById(id));
const list = at('list');
const field = /** @type {HTMLInputElement} */ (at('url'));
const search = /** @type {HTMLInputElement} */ (at('q'));

/** The first page of the list, and what was loaded below it. @type {api.Bookmark[]} */
let bookmarks = [];
/** @type {api.Bookmark[]} */
let further = [];
/** @type {Entry[]} */
let entries = [];
/** @type {string | null} */
let next = null;
/** What was looked for when the list was read. */
let q = '';
/** Whether the list was ever read: before that nobody knows whether it is empty. */
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
  const bar = isOnline() ? (waiting > 1 ? words().toSend(waiting) : '') : words().offline(waiting);
  at('bar').hidden = bar === '';
  if (at('bar').textContent !== bar) at('bar').textContent = bar;
  return shown;
}

/** @param {string} text */
const announce = (text) => (at('said').textContent = text);

function toSignIn() {
  localStorage.removeItem(PERSON);
  localStorage.removeItem(LIST);
  location.replace('/sign-in');
}

/** Which reading of the list is the latest: an answer that was overtaken is dropped. */
let reading = 0;

async function read() {
  const mine = ++reading;
  const wanted = search.value.trim();
  try {
    const page = await api.list({ q: wanted });
    if (mine !== reading) return;
    // What was loaded further down stays, as long as it is the same search.
    if (wanted !== q) further = [];
    if (further.length === 0) next = page.next;
    bookmarks = page.bookmarks;
    q = wanted;
    isRead = true;
    isReached = true;
    if (!q) localStorage.setItem(LIST, JSON.stringify({ name: localStorage.getItem(PERSON), bookmarks }));
  } catch (error) {
    if (error instanceof api.SignedOut) return toSignIn();
    if (mine === reading) isReached = false;
  }
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/** Looks now, and again when it is worth it. A page that nobody sees does not ask. */
async function look() {
  clearTimeout(timer);
  await read();
  const shown = draw();
  if (document.visibilityState === 'visible') timer = setTimeout(look, isMoving(shown) ? SOON_MS : LATER_MS);
}

/** @param {import('./ichido/ichido.js').Queue} queue */
function listen(queue) {
  const changed = async () => {
    entries = await queue.list();
    draw();
  };
  queue.subscribe(({ entry }) => {
    const became = entry && becameOf(entry);
    if (became && !q) bookmarks = withBookmark(bookmarks, became);
    void changed();
    if (entry?.state === 'done') void look();
  });
  at('add').addEventListener('submit', async (event) => {
    event.preventDefault();
    const address = addressOf(field.value);
    at('hint').textContent = field.value.trim() === '' ? words().noAddress : address ? '' : words().badAddress;
    field.setAttribute('aria-invalid', String(address === null));
    if (address === null) return field.focus();
    try {
      await save(queue, address, 'page');
      // Emptied only when it is kept: what cannot be kept is still there to be copied.
      if (addressOf(field.value) === address) field.value = '';
      await changed();
      announce(isOnline() ? words().state.saving : words().savedLater);
    } catch (error) {
      at('hint').textContent = error instanceof Error ? error.message : String(error);
    }
  });
  list.addEventListener('click', (event) => {
    const button = event.target instanceof Element ? event.target.closest('[data-step]') : null;
    const row = button?.closest('.item');
    if (button && row) void step(queue, row, /** @type {import('./state.js').Step} */ (button.getAttribute('data-step')));
  });
  return changed();
}

/** @param {import('./ichido/ichido.js').Queue} queue @param {Element} row @param {import('./state.js').Step} step */
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
      if (!confirm(words().removeSure)) return;
      await api.remove(id);
      [bookmarks, further] = [bookmarks, further].map((list) => list.filter((bookmark) => bookmark.id !== id));
      announce(words().removed);
    }
  } catch (error) {
    if (error instanceof api.SignedOut) return toSignIn();
    announce(step === 'remove' ? words().removeFailed : words().retryFailed);
    at('hint').textContent = step === 'remove' ? words().removeFailed : words().retryFailed;
  }
  void look();
}

function keys() {
  document.addEventListener('keydown', (event) => {
    const isTyping = event.target instanceof HTMLInputElement;
    if (event.key === 'Escape' && isTyping) return event.target.blur();
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const rows = /** @type {HTMLElement[]} */ ([...list.children]);
    const here = rows.findIndex((row) => row.contains(document.activeElement));
    const go = (/** @type {number} */ place) => rows[Math.max(0, Math.min(rows.length - 1, place))]?.focus();
    /** @type {Record<string, () => void>} */
    const does = {
      '/': () => search.focus(),
      n: () => field.focus(),
      j: () => go(here + 1),
      k: () => go(here - 1),
      r: () => /** @type {HTMLElement | null} */ (rows[here]?.querySelector('[data-step="retry"]') ?? null)?.click(),
    };
    const act = does[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}

function wire() {
  languageButton(at('language'), draw);
  at('sign-out').addEventListener('click', async () => {
    try {
      await api.signOut();
      toSignIn();
    } catch {
      announce(words().unreachable);
      at('hint').textContent = words().unreachable;
    }
  });
  search.addEventListener('input', () => void look());
  at('find').addEventListener('submit', (event) => event.preventDefault());
  list.addEventListener('click', (event) => {
    const text = event.target instanceof Element ? event.target.closest('.text') : null;
    text?.closest('.item')?.toggleAttribute('data-open');
  });
  at('more').addEventListener('click', async () => {
    try {
      const page = await api.list({ q, before: next ?? undefined });
      further = [...further, ...page.bookmarks];
      next = page.next;
    } catch {
      isReached = false;
    }
    draw();
  });
  for (const event of ['online', 'offline', 'focus']) addEventListener(event, () => void look());
  document.addEventListener('visibilitychange', () => void look());
  const open = `void(open(${JSON.stringify(`${location.origin}/save?from=bookmarklet&url=`)}+encodeURIComponent(location.href)+'&title='+encodeURIComponent(document.title),'_blank','popup,noopener,width=440,height=420'))`;
  at('bookmarklet').setAttribute('href', `javascript:${open}`);
  at('bookmarklet').addEventListener('click', (event) => event.preventDefault());
}

/** Who is signed in; whoever was, where the server is not reached. @returns {Promise<string | null>} */
async function person() {
  try {
    const name = await api.me();
    localStorage.setItem(PERSON, name);
    return name;
  } catch (error) {
    if (error instanceof api.SignedOut) return null;
    isReached = false;
    return localStorage.getItem(PERSON);
  }
}

/** What somebody had when the list was last read here; it is a copy, and nobody else's to see. @param {string} name @returns {api.Bookmark[]} */
function remembered(name) {
  try {
    const kept = JSON.parse(localStorage.getItem(LIST) ?? 'null');
    return kept?.name === name && Array.isArray(kept.bookmarks) ? kept.bookmarks : [];
  } catch {
    return [];
  }
}

async function start() {
  speak(document);
  wire();
  keys();
  const name = await person();
  if (name === null) return toSignIn();
  bookmarks = remembered(name);
  await listen(await openQueue(name));
  await look();
  document.documentElement.setAttribute('data-started', '');
  // Without it the page needs a network to be opened, and nothing else is amiss: the next visit tries again.
  await navigator.serviceWorker?.register('/sw.js', { type: 'module' }).catch(() => {});
}

void start();
