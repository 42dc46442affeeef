// @ts-check
/**
 * The queue's database: one for each identity, in IndexedDB.
 *
 * Guarantee: each method is one transaction, and is on disk when it resolves (strict durability). Write transactions wait for each other
 * in all tabs, so one sender claims one entry. `entry.js` makes the decisions.
 *
 * @module
 */

import { hurried, isOpen, isSameRequest, look, retried, taken } from './entry.js';

/** @typedef {import('./entry.js').Entered} Entered */
/** @typedef {import('./entry.js').Stored} Stored */
/** @typedef {import('./entry.js').Done} Done */
/** @typedef {import('./entry.js').Terms} Terms */

/** How many done entries are kept, for a page that was closed when they ended. */
export const MAX_DONE_KEPT = 100;
const VERSION = 1;
const ENTRIES = 'entries';
const DONE = 'done';

export class Store {
  /** @param {IDBDatabase} database */
  constructor(database) {
    this.database = database;
    // Another page needs a newer version: close, so the next use fails.
    database.onversionchange = () => database.close();
  }

  /**
   * @param {string} name
   * @returns {Promise<Store>}
   */
  static async open(name) {
    if (!globalThis.indexedDB) throw new Error('IndexedDB is missing: `Queue` works only in browsers; use `Client` elsewhere');
    const opening = indexedDB.open(name, VERSION);
    opening.onupgradeneeded = () => {
      const entries = opening.result.createObjectStore(ENTRIES, { keyPath: 'id', autoIncrement: true });
      entries.createIndex('destination', 'destination');
      entries.createIndex('intent', 'intent');
      opening.result.createObjectStore(DONE, { keyPath: 'id' });
    };
    return new Store(await result(opening));
  }

  close() {
    this.database.close();
  }

  /** Deletes the entries that are done. */
  forgetDone() {
    return this.#write([DONE], (done) => result(done.clear()));
  }

  /**
   * Adds an entry, unless one with the same intent is open: then that entry is the action, and is retried if it failed.
   *
   * @param {Entered} entry
   * @param {number} maxEntries
   * @param {number} now
   * @returns {Promise<Stored>}
   */
  add(entry, maxEntries, now) {
    return this.#write([ENTRIES], async (entries) => {
      const found = entry.intent === null ? null : await this.#open(entries, entry.intent);
      if (found && !isSameRequest(found, entry)) {
        throw new Error(
          `an action with the intent ${JSON.stringify(entry.intent)} is still open with a different request; wait for it, discard entry ${found.id}, or use another intent`,
        );
      }
      if (found) {
        const again = found.phase === 'failed' && found.canRetry ? retried(found, now) : found;
        if (again !== found) await result(entries.put(again));
        return again;
      }
      if (maxEntries <= (await result(entries.count()))) {
        throw new Error(`the queue is full: it has ${maxEntries} entries; wait until some are sent, or discard failed ones`);
      }
      const id = Number(await result(entries.add(entry)));
      return { ...entry, id };
    });
  }

  /**
   * @param {IDBObjectStore} entries
   * @param {string} intent
   * @returns {Promise<Stored | null>}
   */
  async #open(entries, intent) {
    /** @type {Stored[]} */
    const found = await result(entries.index('intent').getAll(intent));
    return found.find(isOpen) ?? null;
  }

  /**
   * Claims the first entry of a destination that can be sent, and holds those before it that must not be sent.
   *
   * @param {string} destination
   * @param {Terms} terms
   * @param {number} now
   * @returns {Promise<{ sending: Stored | null, held: Stored[], waitMs: number | null }>}
   */
  claim(destination, terms, now) {
    return this.#write([ENTRIES], async (entries) => {
      /** @type {Stored[]} */
      const held = [];
      for await (const entry of inOrder(entries, destination)) {
        const found = look(taken(entry), terms, now);
        if (found.turn === 'wait') return { sending: null, held, waitMs: found.ms };
        if (found.turn === 'pass') continue;
        await result(entries.put(found.entry));
        if (found.turn === 'send') return { sending: found.entry, held, waitMs: null };
        held.push(found.entry);
      }
      return { sending: null, held, waitMs: null };
    });
  }

  /**
   * Returns the wait until the first entry of a destination may be sent: 0 is now, `null` means that there is none.
   *
   * @param {string} destination
   * @param {Terms} terms
   * @param {number} now
   * @returns {Promise<number | null>}
   */
  waitMs(destination, terms, now) {
    return this.#read([ENTRIES], async (entries) => {
      for await (const entry of inOrder(entries, destination)) {
        const found = look(entry, terms, now);
        if (found.turn !== 'pass') return found.turn === 'wait' ? found.ms : 0;
      }
      return null;
    });
  }

  /**
   * Stores the outcome of an attempt, if its claim is still current. That an entry is done counts in any case.
   *
   * @param {Stored} sending
   * @param {Stored | Done} end
   * @returns {Promise<boolean>} whether it counted
   */
  settle(sending, end) {
    return this.#write([ENTRIES, DONE], async (entries, done) => {
      /** @type {Stored | undefined} */
      const current = await result(entries.get(sending.id));
      if (current === undefined) return false;
      if (!('phase' in end)) {
        await result(entries.delete(sending.id));
        await result(done.put(end));
        await prune(done);
        return true;
      }
      if (current.fence !== sending.fence) return false;
      await result(entries.put(end));
      return true;
    });
  }

  /**
   * @param {number} id
   * @param {(entry: Stored) => Stored} step
   * @returns {Promise<Stored>}
   */
  change(id, step) {
    return this.#write([ENTRIES], async (entries) => {
      /** @type {Stored | undefined} */
      const entry = await result(entries.get(id));
      if (entry === undefined) throw new Error(`entry ${id} does not exist: it was done, or discarded`);
      const changed = step(entry);
      await result(entries.put(changed));
      return changed;
    });
  }

  /**
   * @param {number} id
   * @param {(entry: Stored) => void} check throws if it must not be removed
   */
  remove(id, check) {
    return this.#write([ENTRIES, DONE], async (entries, done) => {
      const entry = await result(entries.get(id));
      if (entry !== undefined) check(entry);
      await result(entries.delete(id));
      await result(done.delete(id));
    });
  }

  /**
   * Makes entries due now that wait only after attempts without a response.
   *
   * @param {number} now
   */
  hurry(now) {
    return this.#write([ENTRIES], async (entries) => {
      for await (const entry of inOrder(entries, null)) {
        const sooner = hurried(entry, now);
        if (sooner) await result(entries.put(sooner));
      }
    });
  }

  /** @returns {Promise<(Stored | Done)[]>} in order */
  list() {
    return this.#read([ENTRIES, DONE], async (entries, done) => {
      /** @type {(Stored | Done)[]} */
      const all = [...(await result(entries.getAll())), ...(await result(done.getAll()))];
      return all.sort((one, other) => one.id - other.id);
    });
  }

  /**
   * @param {number} id
   * @returns {Promise<Stored | Done | null>}
   */
  get(id) {
    return this.#read([ENTRIES, DONE], async (entries, done) => {
      return (await result(entries.get(id))) ?? (await result(done.get(id))) ?? null;
    });
  }

  /**
   * Returns the destinations with entries that will be sent, and their number.
   *
   * @returns {Promise<Map<string, number>>}
   */
  destinations() {
    return this.#read([ENTRIES], async (entries) => {
      /** @type {Map<string, number>} */
      const found = new Map();
      for await (const { destination, phase } of inOrder(entries, null)) {
        if (phase === 'waiting' || phase === 'sending') found.set(destination, (found.get(destination) ?? 0) + 1);
      }
      return found;
    });
  }

  /**
   * @template T
   * @param {string[]} names
   * @param {(...stores: [IDBObjectStore, IDBObjectStore]) => Promise<T>} work
   */
  #write(names, work) {
    return run(this.database.transaction(names, 'readwrite', { durability: 'strict' }), names, work);
  }

  /**
   * @template T
   * @param {string[]} names
   * @param {(...stores: [IDBObjectStore, IDBObjectStore]) => Promise<T>} work
   */
  #read(names, work) {
    return run(this.database.transaction(names, 'readonly'), names, work);
  }
}

/**
 * Runs `work` in a transaction, completely or not at all.
 *
 * @template T
 * @param {IDBTransaction} transaction
 * @param {string[]} names
 * @param {(...stores: [IDBObjectStore, IDBObjectStore]) => Promise<T>} work
 * @returns {Promise<T>}
 */
async function run(transaction, names, work) {
  const over = new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve(undefined);
    transaction.onabort = () => reject(transaction.error ?? new Error('the transaction was aborted'));
  });
  // Awaited below; if `work` itself fails, its own error is thrown.
  over.catch(() => {});
  try {
    const stores = names.map((name) => transaction.objectStore(name));
    const value = await work(.../** @type {[IDBObjectStore, IDBObjectStore]} */ (stores));
    await over;
    return value;
  } catch (error) {
    try {
      transaction.abort();
    } catch {
      // It has ended already.
    }
    throw error;
  }
}

/**
 * @template T
 * @param {IDBRequest<T>} request
 * @returns {Promise<T>}
 */
function result(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/**
 * Yields the entries of a destination, or all, in order. One at a time: bodies are large.
 *
 * @param {IDBObjectStore} entries
 * @param {string | null} destination
 * @returns {AsyncGenerator<Stored>}
 */
async function* inOrder(entries, destination) {
  const source = destination === null ? entries : entries.index('destination');
  const cursors = source.openCursor(destination);
  let cursor = await result(cursors);
  while (cursor) {
    yield cursor.value;
    cursor.continue();
    cursor = await result(cursors);
  }
}

/** @param {IDBObjectStore} done */
async function prune(done) {
  const ids = await result(done.getAllKeys());
  for (const id of ids.slice(0, Math.max(0, ids.length - MAX_DONE_KEPT))) await result(done.delete(id));
}
