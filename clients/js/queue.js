// @ts-check
/**
 * The offline queue: saves now, sends when it can, survives the page.
 *
 * Guarantee: when `enqueue` resolves, key and bytes are on disk, and no byte has been sent. One tab at a time sends the entries of a
 * destination, in order and with their own keys. An entry leaves the queue only after a definite response. A queue belongs to one
 * identity and has its own database, so one person's queue never finds another person's entries.
 *
 * It looks for work when it is opened, on `enqueue`, when the network or the person comes back, when a wait ends, periodically, and on
 * Background Sync: it never depends on one of these alone.
 *
 * @module
 */

import { PROFILES, wordsOf } from './client.js';
import { MAX_ANSWER_KEPT_BYTES, entered, LEASE_MARGIN_MS, released, retried, settled, triesBefore, view } from './entry.js';
import { newKey } from './key.js';
import { CLIENT_RETRY, decideInQueue, MAX_ATTEMPTS, MAX_WAIT_MS } from './next.js';
import { MAX_BYTES, isBrowser, oneOf, outsideOf, refuse, MAX_TIME_MS, within } from './outside.js';
import { Store } from './store.js';
import { checkHop, CREDENTIALS_MODES, exchange, requestOf, tryFields } from './wire.js';

/** @typedef {import('./ichido.d.ts').Change} Change */
/** @typedef {import('./ichido.d.ts').Draft} Draft */
/** @typedef {import('./ichido.d.ts').Entry} Entry */
/** @typedef {import('./ichido.d.ts').Fields} Fields */
/** @typedef {import('./ichido.d.ts').QueueSettings} QueueSettings */
/** @typedef {import('./entry.js').Stored} Stored */
/** @typedef {import('./entry.js').Done} Done */

/** How often the queue looks for work while entries wait. */
export const LOOK_EVERY_MS = 60_000;
/** When `authorize` is called again after it returned `null`. */
export const AUTHORIZE_AGAIN_MS = 30_000;
/** The maximum bytes of requests that may outlive a page at once (Fetch standard), and what each counts besides its body. */
export const MAX_KEEPALIVE_BYTES = 64 * 1024;
const KEEPALIVE_BYTES_EACH = 2 * 1024;
/** The maximum of `maxEntries`. */
const MAX_ENTRIES = 100_000;
/** The tag for Background Sync. */
export const SYNC_TAG = 'ichido';
/** The default name of a queue. */
const NAME = 'ichido';

/** Bytes of this page's requests in flight that may outlive it. */
let keepaliveBytes = 0;

export class Queue {
  /** @type {Store} */
  #store;
  /** @type {ReturnType<typeof settingsOf>} */
  #settings;
  /** @type {string} */
  #name;
  /** Our name in leases. */
  #owner = newKey();
  /** @type {Set<(change: Change) => void>} */
  #listeners = new Set();
  /** @type {Map<string, { again: boolean, over: Promise<void> }>} */
  #lanes = new Map();
  /** @type {{ at: number, stop: AbortController } | null} */
  #wake = null;
  #closed = new AbortController();
  /** @type {BroadcastChannel | null} */
  #channel = null;
  /** Why this page cannot send at all. @type {string | null} */
  #obstacle = null;
  /** @type {boolean | null} */
  isPersistent = null;

  /**
   * @param {Store} store
   * @param {ReturnType<typeof settingsOf>} settings
   * @param {string} name
   */
  constructor(store, settings, name) {
    this.#store = store;
    this.#settings = settings;
    this.#name = name;
  }

  /**
   * @param {QueueSettings} settings
   * @returns {Promise<Queue>}
   */
  static async open(settings) {
    const resolved = settingsOf(settings);
    const name = `ichido ${JSON.stringify([resolved.name, resolved.identity])}`;
    const queue = new Queue(await Store.open(name), resolved, name);
    queue.#listen();
    await queue.#store.hurry(resolved.outside.now());
    queue.#kick();
    return queue;
  }

  /** @param {{ name?: string }} [settings] */
  static async forgetDone({ name = NAME } = {}) {
    const ours = `ichido [${JSON.stringify(name)},`;
    // Some browsers cannot list their databases.
    for (const { name: found } of (await globalThis.indexedDB?.databases?.()) ?? []) {
      if (!found?.startsWith(ours)) continue;
      const store = await Store.open(found);
      await store.forgetDone().finally(() => store.close());
    }
  }

  /**
   * @param {Draft} draft
   * @returns {Promise<Entry>}
   */
  async enqueue(draft) {
    const { baseUrl, maxEntryBytes, maxEntries, outside } = this.#settings;
    const request = requestOf(draft, baseUrl);
    const bytes = request.body?.length ?? 0;
    if (maxEntryBytes < bytes) {
      throw new RangeError(`the body has ${bytes} bytes, and the limit is ${maxEntryBytes}; raise maxEntryBytes, or send less`);
    }
    const now = outside.now();
    const stored = await this.#stored(() => this.#store.add(entered(request, draft, newKey(), now), maxEntries, now));
    this.#persist();
    void askForSync();
    this.#tell(stored.id, stored);
    this.#kick();
    return view(stored, this.#obstacle);
  }

  async list() {
    return (await this.#store.list()).map((entry) => view(entry, this.#obstacle));
  }

  /** @param {number} id */
  async get(id) {
    const entry = await this.#store.get(id);
    return entry === null ? null : view(entry, this.#obstacle);
  }

  /**
   * @param {(change: Change) => void} listener
   * @returns {() => void}
   */
  subscribe(listener) {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** @param {number} id */
  retry(id) {
    return this.#step(id, retried);
  }

  /** @param {number} id */
  release(id) {
    return this.#step(id, released);
  }

  /** @param {number} id */
  async discard(id) {
    const now = this.#settings.outside.now();
    await this.#store.remove(id, (entry) => {
      if (entry.phase === 'sending' && entry.lease !== null && now < entry.lease.until) {
        throw new Error(`entry ${id} is being sent; wait for its outcome`);
      }
    });
    this.#tell(id, null);
    this.#kick();
  }

  async drain() {
    const destinations = await this.#store.destinations();
    await Promise.all(Array.from(destinations.keys(), (destination) => this.#lane(destination)));
    const waiting = Array.from((await this.#store.destinations()).values()).reduce((sum, count) => sum + count, 0);
    if (0 < waiting) this.#wakeIn(LOOK_EVERY_MS);
    return waiting;
  }

  async sendNow() {
    await this.#hurry();
  }

  close() {
    this.#closed.abort();
    this.#wake?.stop.abort();
    this.#channel?.close();
    this.#listeners.clear();
    this.#store.close();
  }

  // -------------------------------------------------------------- sending

  /** Resolves when the page is left or the queue is closed. */
  #left() {
    const { signal } = this.#closed;
    return new Promise((resolve) => {
      signal.addEventListener('abort', resolve);
      globalThis.addEventListener?.('pagehide', resolve, { once: true, signal });
    });
  }

  get #leaseMs() {
    return this.#settings.attemptTimeoutMs + LEASE_MARGIN_MS;
  }

  /**
   * Sends the due entries of one destination. One run at a time: a call during a run makes it look once more.
   *
   * @param {string} destination
   * @returns {Promise<void>}
   */
  #lane(destination) {
    const running = this.#lanes.get(destination);
    if (running) {
      running.again = true;
      return running.over;
    }
    const lane = { again: false, over: Promise.resolve() };
    this.#lanes.set(destination, lane);
    lane.over = (async () => {
      try {
        do {
          lane.again = false;
          await this.#alone(destination, async (turn) => {
            while (!turn.isOver && (await this.#sendFirst(destination, turn.isLocked)));
          });
        } while (lane.again && !this.#closed.signal.aborted);
      } finally {
        this.#lanes.delete(destination);
      }
    })();
    return lane.over;
  }

  /**
   * Runs `work` in one tab at a time. Without Web Locks, leases alone keep tabs apart; they only take longer to detect a dead tab. The
   * same applies if the lock is not free for a whole lease: a page that the browser froze may hold it.
   *
   * A page that is left releases the lock, because a browser may keep the page frozen for back navigation. Its request in flight
   * continues.
   *
   * @param {string} destination
   * @param {(turn: { isLocked: boolean, isOver: boolean }) => Promise<void>} work
   */
  async #alone(destination, work) {
    const { outside } = this.#settings;
    const bare = { isLocked: false, isOver: false };
    if (outside.locks === null) return work(bare);
    const over = new AbortController();
    const stop = () => over.abort();
    this.#closed.signal.addEventListener('abort', stop);
    const isGiven = new AbortController();
    void outside.wait(this.#leaseMs, isGiven.signal).then(() => isGiven.signal.aborted || stop());
    try {
      await outside.locks.request(`${this.#name} ${destination}`, { signal: over.signal }, () => {
        isGiven.abort();
        const turn = { isLocked: true, isOver: false };
        return Promise.race([work(turn), this.#left()]).finally(() => (turn.isOver = true));
      });
    } catch (error) {
      if (isGiven.signal.aborted || !over.signal.aborted) throw error;
      if (!this.#closed.signal.aborted) await work(bare);
    } finally {
      isGiven.abort();
      this.#closed.signal.removeEventListener('abort', stop);
    }
  }

  /**
   * @param {string} destination
   * @param {boolean} isLocked
   * @returns {Promise<boolean>} whether to look again at once
   */
  async #sendFirst(destination, isLocked) {
    const { outside, holdAfterMs } = this.#settings;
    if (this.#closed.signal.aborted || !outside.isOnline()) return false;
    const terms = { owner: this.#owner, isLocked, leaseMs: this.#leaseMs, holdAfterMs };
    const waitMs = await this.#store.waitMs(destination, terms, outside.now());
    if (waitMs === null) return false;
    if (0 < waitMs) {
      this.#wakeIn(waitMs);
      return false;
    }
    const fields = await this.#authorized();
    if (fields === null || this.#closed.signal.aborted) return false;
    const claim = await this.#store.claim(destination, terms, outside.now());
    for (const entry of claim.held) this.#tell(entry.id, entry);
    if (claim.waitMs !== null) this.#wakeIn(claim.waitMs);
    if (claim.sending === null) return false;
    this.#tell(claim.sending.id, claim.sending);
    await this.#send(claim.sending, fields);
    return true;
  }

  /**
   * @param {Stored} sending
   * @param {Fields} credentials
   */
  async #send(sending, credentials) {
    const { outside, rules, hop, attemptTimeoutMs, maxResponseBytes } = this.#settings;
    const numbered = tryFields(rules.profile, sending.sent, sending.cause, hop, outside.now());
    const bytes = keepaliveBytesOf(sending);
    keepaliveBytes += bytes;
    const way = {
      timeoutMs: attemptTimeoutMs,
      maxResponseBytes,
      credentials: this.#settings.credentials,
      keepalive: 0 < bytes,
      fields: { ...credentials, ...numbered },
      signal: null,
    };
    const came = await exchange(outside, sending, way).finally(() => (keepaliveBytes -= bytes));
    const now = outside.now();
    const decide = (/** @type {import('./ichido.d.ts').Seen} */ seen) => decideInQueue(rules, triesBefore(sending), sending.unanswered, seen, now, outside.dice());
    let { answer, message } = came;
    let decided = decide(came.seen);
    if (decided.next === 'done' && answer !== null && !this.#settings.isOurs(answer, sending.key)) {
      // The responder may have passed the request on, so the effect is unknown.
      message = `the response ${answer.status} is not from this server; is a network login page in the way?`;
      [answer, decided] = [null, decide({ fault: 'answer_cut' })];
    }
    const words = decided.next === 'give_up' && answer === null ? `${message}; ${wordsOf(decided.why)}` : message;
    const end = settled(sending, decided, { answer: kept(answer), message: words }, now);
    if (this.#closed.signal.aborted) return;
    if (await this.#store.settle(sending, end)) this.#tell(sending.id, end);
  }

  /** @returns {Promise<Fields | null>} */
  async #authorized() {
    const { authorize, identity } = this.#settings;
    const before = this.#obstacle;
    let fields = null;
    try {
      fields = await authorize(identity);
      this.#obstacle = fields === null ? `waits until ${identity} is signed in` : null;
    } catch (error) {
      this.#obstacle = `authorize failed: ${/** @type {any} */ (error)?.message ?? error}`;
    }
    if (fields === null) this.#wakeIn(AUTHORIZE_AGAIN_MS);
    if (before !== this.#obstacle) await this.#tellAll();
    return fields;
  }

  // -------------------------------------------------------------- looking for work

  #listen() {
    const until = { signal: this.#closed.signal };
    const hurry = () => void this.#hurry();
    globalThis.addEventListener?.('online', hurry, until);
    globalThis.addEventListener?.('pageshow', hurry, until);
    globalThis.document?.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && hurry(), until);
    if (typeof BroadcastChannel !== 'function') return;
    this.#channel = new BroadcastChannel(this.#name);
    this.#channel.onmessage = ({ data }) => void this.#heard(data.id).catch(complain);
  }

  async #hurry() {
    try {
      if (this.#closed.signal.aborted) return;
      await this.#store.hurry(this.#settings.outside.now());
      await this.drain();
    } catch (error) {
      if (!this.#closed.signal.aborted) complain(error);
    }
  }

  #kick() {
    if (this.#closed.signal.aborted) return;
    this.drain().catch((error) => {
      if (!this.#closed.signal.aborted) complain(error);
    });
  }

  /** @param {number} ms */
  #wakeIn(ms) {
    if (this.#closed.signal.aborted) return;
    const { outside } = this.#settings;
    const at = outside.elapsed() + ms;
    if (this.#wake && this.#wake.at <= at) return;
    this.#wake?.stop.abort();
    const stop = new AbortController();
    this.#wake = { at, stop };
    void outside.wait(ms, stop.signal).then(() => {
      if (stop.signal.aborted) return;
      this.#wake = null;
      this.#kick();
    });
  }

  // -------------------------------------------------------------- notifications

  /**
   * @param {number} id
   * @param {(entry: Stored, now: number) => Stored} step
   */
  async #step(id, step) {
    const changed = await this.#store.change(id, (entry) => step(entry, this.#settings.outside.now()));
    this.#tell(id, changed);
    this.#kick();
    return view(changed, this.#obstacle);
  }

  /**
   * @param {number} id
   * @param {Stored | Done | null} entry
   */
  #tell(id, entry) {
    if (this.#closed.signal.aborted) return;
    this.#channel?.postMessage({ id });
    this.#tellHere(id, entry);
  }

  /**
   * @param {number} id
   * @param {Stored | Done | null} entry
   */
  #tellHere(id, entry) {
    const change = { id, entry: entry === null ? null : view(entry, this.#obstacle) };
    for (const listener of this.#listeners) {
      try {
        listener(change);
      } catch (error) {
        // A listener that fails must not stop the sending.
        complain(error);
      }
    }
  }

  /** Another tab changed an entry. @param {number} id */
  async #heard(id) {
    if (this.#closed.signal.aborted) return;
    const entry = await this.#store.get(id);
    this.#tellHere(id, entry);
    // That tab may be gone before it sends the entry.
    if (entry !== null && 'phase' in entry && entry.phase === 'waiting') this.#kick();
  }

  async #tellAll() {
    for (const entry of await this.#store.list()) if ('phase' in entry) this.#tellHere(entry.id, entry);
  }

  /** Asks the browser once not to evict the stored data. Not awaited: it may ask the person. */
  #persist() {
    if (this.isPersistent !== null || !globalThis.navigator?.storage?.persist) return;
    this.isPersistent = false;
    navigator.storage.persist().then(
      (isGranted) => (this.isPersistent = isGranted),
      (error) => complain(error),
    );
  }

  /**
   * @template T
   * @param {() => Promise<T>} work
   * @returns {Promise<T>}
   */
  async #stored(work) {
    try {
      return await work();
    } catch (error) {
      if (/** @type {any} */ (error)?.name !== 'QuotaExceededError') throw error;
      throw new Error('the entry was not saved: the browser has no space left for this site; free some, or discard failed entries', { cause: error });
    }
  }
}

/**
 * Fills in the defaults, or throws all errors in the settings.
 *
 * @param {QueueSettings} settings
 */
function settingsOf(settings) {
  /** @type {string[]} */
  const problems = [];
  if (typeof settings?.identity !== 'string' || settings.identity === '') {
    problems.push('identity is missing; name the person who owns this queue, so nothing is sent as somebody else');
  }
  const hop = settings.hop === undefined ? (isBrowser() ? 'browser' : null) : settings.hop;
  checkHop(problems, hop);
  const attemptTimeoutMs = within(problems, 'attemptTimeoutMs', settings.attemptTimeoutMs, 30_000, [1, MAX_TIME_MS]);
  const keepsMs = within(problems, 'keepsKeysForMs', settings.keepsKeysForMs, 72 * 60 * 60 * 1000, [attemptTimeoutMs + 1, MAX_WAIT_MS * 12]);
  const attempts = within(problems, 'attempts', settings.attempts, CLIENT_RETRY.attempts, [1, MAX_ATTEMPTS]);
  const resolved = {
    identity: settings.identity,
    name: settings.name ?? NAME,
    authorize: settings.authorize ?? (() => ({})),
    baseUrl: settings.baseUrl,
    isOurs: settings.isOurs ?? (() => true),
    credentials: oneOf(problems, 'credentials', settings.credentials, CREDENTIALS_MODES),
    hop,
    rules: {
      retry: { ...CLIENT_RETRY, attempts },
      retryAfterMaxMs: MAX_WAIT_MS,
      profile: oneOf(problems, 'profile', settings.profile, PROFILES),
    },
    attemptTimeoutMs,
    // An attempt that starts just before the server forgets the key may arrive just after.
    holdAfterMs: keepsMs - attemptTimeoutMs,
    maxEntryBytes: within(problems, 'maxEntryBytes', settings.maxEntryBytes, 1 << 20, [0, MAX_BYTES]),
    maxEntries: within(problems, 'maxEntries', settings.maxEntries, 1_000, [1, MAX_ENTRIES]),
    maxResponseBytes: within(problems, 'maxResponseBytes', settings.maxResponseBytes, 1 << 20, [1, MAX_BYTES]),
    outside: outsideOf(settings.outside),
  };
  refuse(problems);
  return resolved;
}

/**
 * Returns what a request counts towards the limit of requests that outlive the page; 0 if it must not outlive it. An attempt after one
 * without a response never does: if other requests of the page exceed the limit, the browser fails it like a broken network.
 *
 * @param {Stored} sending
 */
function keepaliveBytesOf(sending) {
  const bytes = (sending.body?.length ?? 0) + KEEPALIVE_BYTES_EACH;
  return sending.unanswered === 0 && keepaliveBytes + bytes <= MAX_KEEPALIVE_BYTES ? bytes : 0;
}

/**
 * @param {import('./wire.js').Answer | null} answer
 * @returns {import('./entry.js').KeptAnswer | null}
 */
function kept(answer) {
  if (answer === null) return null;
  const fits = answer.isWhole && answer.body.length <= MAX_ANSWER_KEPT_BYTES;
  return { status: answer.status, isReplay: answer.isReplay, body: fits ? answer.text() : null };
}

/** Registers Background Sync, if the browser supports it and a service worker listens. It is one of several triggers. */
async function askForSync() {
  try {
    const registration = /** @type {any} */ (await globalThis.navigator?.serviceWorker?.getRegistration());
    await registration?.sync?.register(SYNC_TAG);
  } catch {
    // Not allowed here (a private window, a user setting): the other triggers remain.
  }
}

/**
 * Reports an error of the page to its error listeners, or to the console.
 *
 * @param {unknown} error
 */
function complain(error) {
  if (typeof globalThis.reportError === 'function') globalThis.reportError(error);
  else console.error(error);
}
