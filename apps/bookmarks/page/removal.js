// @ts-check
// Deleting with undo: the row disappears at once, and the bookmark is deleted a few seconds later, or when the page is left.

/** How long a deletion can be undone. */
export const UNDO_MS = 6_000;

/** @typedef {{ id: string, title: string }} Removed */

export class Removal {
  /** What is about to be deleted, at most one. @type {(Removed & { timer: ReturnType<typeof setTimeout> }) | null} */
  #open = null;
  /** @type {Set<string>} */
  #sent = new Set();
  #calls;

  /** @param {{ remove: (id: string) => Promise<void>, removed: (id: string) => void, failed: (removed: Removed, error: unknown) => void, changed: () => void }} calls */
  constructor(calls) {
    this.#calls = calls;
    addEventListener('pagehide', () => void this.commit());
  }

  /** @returns {Removed | null} */
  get open() {
    return this.#open;
  }

  /** Whether this bookmark is being deleted, so it is not shown. @param {string} id */
  hides(id) {
    return this.#open?.id === id || this.#sent.has(id);
  }

  /** @param {Removed} what */
  begin(what) {
    void this.commit();
    this.#open = { ...what, timer: setTimeout(() => void this.commit(), UNDO_MS) };
    this.#calls.changed();
  }

  /** Returns what is not deleted after all. @returns {Removed | null} */
  undo() {
    const open = this.#open;
    if (open === null) return null;
    clearTimeout(open.timer);
    this.#open = null;
    this.#calls.changed();
    return open;
  }

  /** Deletes now what can still be undone. */
  async commit() {
    const open = this.#open;
    if (open === null) return;
    clearTimeout(open.timer);
    this.#open = null;
    this.#sent.add(open.id);
    this.#calls.changed();
    try {
      await this.#calls.remove(open.id);
      this.#calls.removed(open.id);
    } catch (error) {
      this.#calls.failed(open, error);
    } finally {
      this.#sent.delete(open.id);
      this.#calls.changed();
    }
  }
}
