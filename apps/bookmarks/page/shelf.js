// @ts-check
// The bookmarks that the page has: the first page of the list, those loaded below it, and one that is shown on top. Pure.

import { has } from './find.js';

/** @typedef {import('./api.js').Bookmark} Bookmark */
/** @typedef {import('./api.js').Listed} Listed */

/** How many bookmarks are kept for searching without the server. */
const MAX_KNOWN = 1_000;

/** Newest first. @param {Bookmark} one @param {Bookmark} other */
const byAge = (one, other) => Date.parse(other.created_at) - Date.parse(one.created_at);

export class Shelf {
  /** The first page. @type {Bookmark[]} */
  #first;
  /** The bookmarks loaded below it. @type {Bookmark[]} */
  #further = [];
  /** Every bookmark seen, by id. @type {Map<string, Bookmark>} */
  #known = new Map();
  /** Shown on top, because the person has just saved it, and whether it was saved before. @type {{ bookmark: Bookmark, isOld: boolean } | null} */
  pinned = null;
  /** The cursor of the next page. @type {string | null} */
  next = null;
  /** How many there are in total, if the server says so. @type {number | null} */
  total = null;
  /** The search that the list was read with. */
  q = '';
  /** Whether the list was ever read. Before that, an empty list means nothing. */
  isRead = false;

  /** @param {Bookmark[]} remembered */
  constructor(remembered) {
    this.#first = remembered;
    this.#learn(remembered);
  }

  /** @param {Bookmark[]} bookmarks */
  #learn(bookmarks) {
    for (const bookmark of bookmarks) {
      this.#known.delete(bookmark.id);
      this.#known.set(bookmark.id, bookmark);
    }
    for (const id of this.#known.keys()) {
      if (this.#known.size <= MAX_KNOWN) return;
      this.#known.delete(id);
    }
  }

  /** The rows to show, in order. */
  get shown() {
    const first = new Set(this.#first.map(({ id }) => id));
    return this.#onTop([...this.#first, ...this.#further.filter(({ id }) => !first.has(id))]);
  }

  /** The rows to show if the server cannot be asked. @param {string} q */
  local(q) {
    return this.#onTop(this.known.filter((bookmark) => has(bookmark, q)));
  }

  /** @param {Bookmark[]} rows */
  #onTop(rows) {
    const { pinned } = this;
    return pinned === null ? rows : [pinned.bookmark, ...rows.filter(({ id }) => id !== pinned.bookmark.id)];
  }

  /** All bookmarks that the page has, newest first. */
  get known() {
    return [...this.#known.values()].sort(byAge);
  }

  /** Takes a first page. Bookmarks loaded further down stay as long as the search is the same. @param {Listed} page @param {string} q */
  read(page, q) {
    const isSame = q === this.q && this.isRead;
    const last = page.bookmarks.at(-1);
    const ids = new Set(page.bookmarks.map(({ id }) => id));
    const isPast = (/** @type {Bookmark} */ bookmark) => page.next !== null && last !== undefined && byAge(last, bookmark) <= 0;
    if (q === '') {
      // What should be on this page and is not was deleted elsewhere.
      const isGone = (/** @type {Bookmark} */ bookmark) => !ids.has(bookmark.id) && !isPast(bookmark);
      for (const bookmark of this.known) if (isGone(bookmark)) this.#known.delete(bookmark.id);
      this.#further = this.#further.filter((bookmark) => !isGone(bookmark));
    }
    // New bookmarks push others off the first page; they are still in the list.
    const pushed = isSame && this.#further.length > 0 ? this.#first.filter((bookmark) => !ids.has(bookmark.id) && isPast(bookmark)) : [];
    this.#further = isSame ? [...pushed, ...this.#further] : [];
    if (this.#further.length === 0) this.next = page.next;
    this.#first = page.bookmarks;
    this.total = page.total ?? (q === this.q ? this.total : null);
    this.q = q;
    this.isRead = true;
    this.#learn(page.bookmarks);
    this.#refreshPinned(page.bookmarks);
  }

  /** Takes the page after those already here. @param {Listed} page */
  readMore(page) {
    const here = new Set(this.shown.map(({ id }) => id));
    if (this.pinned) here.delete(this.pinned.bookmark.id);
    this.#further = [...this.#further, ...page.bookmarks.filter(({ id }) => !here.has(id))];
    this.next = page.next;
    this.#learn(page.bookmarks);
  }

  /** Takes the newest form of one bookmark, which is added if it is new here. @param {Bookmark} bookmark @param {{ isNew?: boolean }} [how] */
  put(bookmark, { isNew = false } = {}) {
    const inPlace = (/** @type {Bookmark[]} */ list) => list.map((one) => (one.id === bookmark.id ? bookmark : one));
    const isHere = [...this.#first, ...this.#further].some(({ id }) => id === bookmark.id);
    this.#first = isHere || !isNew || this.q !== '' ? inPlace(this.#first) : [bookmark, ...this.#first];
    this.#further = inPlace(this.#further);
    if (isNew && !isHere && this.total !== null && !this.#known.has(bookmark.id)) this.total += 1;
    this.#learn([bookmark]);
    this.#refreshPinned([bookmark]);
  }

  /** @param {Bookmark[]} fresh */
  #refreshPinned(fresh) {
    const { pinned } = this;
    const found = fresh.find(({ id }) => id === pinned?.bookmark.id);
    if (pinned && found) this.pinned = { ...pinned, bookmark: found };
  }

  /** @param {string} id @returns {Bookmark | undefined} */
  get(id) {
    return this.#known.get(id);
  }

  /** @param {string} id */
  remove(id) {
    const others = (/** @type {Bookmark[]} */ list) => list.filter((one) => one.id !== id);
    const isHere = this.#known.delete(id);
    this.#first = others(this.#first);
    this.#further = others(this.#further);
    if (this.pinned?.bookmark.id === id) this.pinned = null;
    if (isHere && this.total !== null) this.total -= 1;
  }

  /** The bookmarks below the first page that are about to change: reading the first page does not update them. @param {number} now */
  movingBelow(now) {
    const first = new Set(this.#first.map(({ id }) => id));
    return this.shown.filter((bookmark) => !first.has(bookmark.id) && isMoving(bookmark, now));
  }

  /** How many rows were loaded. */
  get loaded() {
    return this.#first.length + this.#further.length;
  }
}

/** Whether a bookmark is about to change. @param {Bookmark} bookmark @param {number} now */
export const isMoving = ({ status, retry_at }, now) =>
  status === 'processing' || (status === 'retrying' && retry_at !== null && Date.parse(retry_at) <= now);
