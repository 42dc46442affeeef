// @ts-check
// Deleting with undo: the row disappears at once, and the bookmark is deleted a few seconds later, or when the page is left.

/** How long a deletion can be undone. */
export const UNDO_MS = 6_000;
/** How many deletions can be undone together. */
const MAX_OPEN = 50;

/** @typedef {{ id: string, title: string }} Removed */

export class Removal {
  /** What is about to be deleted. @type {Removed[]} */
  #open = [];
  /** Each deletion starts the time again, for all of them. @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** @type {Set<string>} */
  #sent = new Set();
  #calls;

  /**
   * @param {{ remove: (id: string) => Promise<void>, removed: (id: string) => void,
   *   failed: (removed: Removed[], error: unknown) => void, changed: () => void }} calls
   */
  constructor(calls) {
    this.#calls = calls;
    addEventListener('pagehide', () => void this.commit());
  }

  get open() {
    return this.#open;
  }

  /** Whether this bookmark is being deleted, so it is not shown. @param {string} id */
  hides(id) {
    return this.#sent.has(id) || this.#open.some((one) => one.id === id);
  }

  /** @param {Removed} what */
  begin(what) {
    if (MAX_OPEN <= this.#open.length) void this.commit();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.commit(), UNDO_MS);
    this.#open = [...this.#open, what];
    this.#calls.changed();
  }

  /** Returns what is not deleted after all: everything, or the one with this id. @param {string} [id] @returns {Removed[]} */
  undo(id) {
    const back = this.#open.filter((one) => id === undefined || one.id === id);
    if (back.length === 0) return back;
    this.#open = this.#open.filter((one) => !back.includes(one));
    this.#calls.changed();
    return back;
  }

  /** Deletes now what can still be undone. */
  async commit() {
    clearTimeout(this.#timer);
    const open = this.#open;
    if (open.length === 0) return;
    this.#open = [];
    for (const { id } of open) this.#sent.add(id);
    this.#calls.changed();
    /** @type {Removed[]} */
    const failed = [];
    /** @type {unknown} */
    let why;
    await Promise.all(
      open.map(async (one) => {
        try {
          await this.#calls.remove(one.id);
          this.#calls.removed(one.id);
        } catch (error) {
          failed.push(one);
          why = error;
        }
        this.#sent.delete(one.id);
      }),
    );
    if (failed.length > 0) this.#calls.failed(failed, why);
    this.#calls.changed();
  }
}
