// @ts-check
/**
 * An action in the queue: its stored form and its state transitions. Pure: the time is a parameter.
 *
 * Guarantee: the key, the bytes and the position never change. An entry that was sent is not sent again when the server may have
 * forgotten its key: it is held for the person. Only a definite response or a person ends it.
 *
 * ```text
 * waiting → sending → (done: leaves the queue) | waiting | failed
 * waiting → held;   failed → waiting on retry;   held → waiting on release
 * ```
 *
 * @module
 */

import { after } from './next.js';

/** @typedef {import('./ichido.d.ts').Cause} Cause */
/** @typedef {import('./ichido.d.ts').Effect} Effect */
/** @typedef {import('./ichido.d.ts').Entry} Entry */
/** @typedef {import('./ichido.d.ts').Next} Next */
/** @typedef {import('./ichido.d.ts').State} State */
/** @typedef {{ status: number, isReplay: boolean, body: string | null }} KeptAnswer */

/** How much of a response body is kept for the page to read after a reload. */
export const MAX_ANSWER_KEPT_BYTES = 16 * 1024;
/** How far the clock may go back before an entry's age is unknown. */
export const MAX_CLOCK_BACK_MS = 60 * 60 * 1000;
/** What a lease adds to the attempt timeout, for storing the outcome. */
export const LEASE_MARGIN_MS = 5_000;

/**
 * @typedef {object} Entered an entry as stored
 * @property {number} [id] assigned by the store, in order
 * @property {string} key
 * @property {string} method
 * @property {string} url
 * @property {Readonly<Record<string, string>>} headers
 * @property {Uint8Array | null} body
 * @property {string} destination entries of one destination are sent in order
 * @property {string | null} intent
 * @property {number} createdAt
 * @property {'waiting' | 'sending' | 'failed' | 'held'} phase
 * @property {Cause} cause who started the next attempt
 * @property {number} sent requests made, including the one in flight
 * @property {number} failed consecutive responses without an outcome
 * @property {number} unanswered consecutive attempts without a response
 * @property {boolean} inFlight whether the server said that it is in flight
 * @property {Effect} effect
 * @property {number | null} coveredSince when the server may first have seen the key
 * @property {number} waitFrom
 * @property {number} dueAt
 * @property {number} fence the number of the current claim
 * @property {{ owner: string, until: number, isLocked: boolean } | null} lease `isLocked`: the claiming tab held the lock
 * @property {string | null} error
 * @property {boolean} canRetry
 * @property {KeptAnswer | null} answer
 */

/** @typedef {Entered & { id: number }} Stored */

/**
 * @typedef {object} Done the rest of an entry that is done
 * @property {number} id
 * @property {string | null} intent
 * @property {number} createdAt
 * @property {number} sent
 * @property {KeptAnswer} answer
 */

/**
 * @typedef {object} Terms
 * @property {string} owner the sender
 * @property {boolean} isLocked whether it holds the destination's lock
 * @property {number} leaseMs
 * @property {number} holdAfterMs
 */

/**
 * @param {{ method: string, url: string, headers: Readonly<Record<string, string>>, body: Uint8Array | null }} request
 * @param {{ intent?: string, destination?: string, cause?: Cause }} draft
 * @param {string} key
 * @param {number} now
 * @returns {Entered}
 */
export function entered(request, draft, key, now) {
  return {
    ...request,
    key,
    destination: draft.destination ?? new URL(request.url).origin,
    intent: draft.intent ?? null,
    createdAt: now,
    phase: 'waiting',
    cause: draft.cause ?? 'manual',
    sent: 0,
    failed: 0,
    unanswered: 0,
    inFlight: false,
    effect: 'not_done',
    coveredSince: null,
    waitFrom: now,
    dueAt: now,
    fence: 0,
    lease: null,
    error: null,
    canRetry: false,
    answer: null,
  };
}

/**
 * Decides what to do with the first entry of a destination.
 *
 * @param {Stored} entry
 * @param {Terms} terms
 * @param {number} now
 * @returns {{ turn: 'pass' } | { turn: 'wait', ms: number } | { turn: 'hold', entry: Stored } | { turn: 'send', entry: Stored }}
 */
export function look(entry, terms, now) {
  if (entry.phase === 'failed' || entry.phase === 'held') return { turn: 'pass' };
  const leasedMs = leaseLeft(entry, terms, now);
  if (0 < leasedMs) return { turn: 'wait', ms: leasedMs };
  // After the clock was set back, do not wait until it reaches the old time again.
  if (entry.phase === 'waiting' && now < entry.dueAt && entry.waitFrom <= now) {
    return { turn: 'wait', ms: entry.dueAt - now };
  }
  if (isForgotten(entry, terms, now)) return { turn: 'hold', entry: held(entry) };
  return { turn: 'send', entry: claimed(entry, terms, now) };
}

/**
 * Returns how long another sender's lease is still valid. The holder of the lock knows that a tab which took its lease with the lock is gone.
 *
 * @param {Stored} entry
 * @param {Terms} terms
 * @param {number} now
 */
function leaseLeft(entry, terms, now) {
  if (entry.lease === null || (terms.isLocked && entry.lease.isLocked)) return 0;
  const left = entry.lease.until - now;
  // More than a whole lease can be left only if the clock was set back.
  return terms.leaseMs < left ? 0 : left;
}

/**
 * @param {Stored} entry
 * @param {Terms} terms
 * @param {number} now
 */
function isForgotten(entry, terms, now) {
  if (entry.coveredSince === null) return false;
  const age = now - entry.coveredSince;
  return terms.holdAfterMs <= age || age < -MAX_CLOCK_BACK_MS;
}

/**
 * @param {Stored} entry
 * @returns {Stored}
 */
function held(entry) {
  const error =
    'it was sent before, its outcome is unknown, and the server may have forgotten its key: sending it again could repeat the effect; check whether it was done, then release or discard it';
  return { ...entry, phase: 'held', lease: null, inFlight: false, error, canRetry: false };
}

/**
 * The claim, which is stored before the request leaves: a sender that finds it later knows that it may have arrived.
 *
 * @param {Stored} entry
 * @param {Terms} terms
 * @param {number} now
 * @returns {Stored}
 */
function claimed(entry, terms, now) {
  return {
    ...entry,
    phase: 'sending',
    sent: entry.sent + 1,
    fence: entry.fence + 1,
    coveredSince: entry.coveredSince ?? now,
    lease: { owner: terms.owner, until: now + terms.leaseMs, isLocked: terms.isLocked },
  };
}

/**
 * Returns the entry after an attempt. `sending` is the entry as claimed.
 *
 * @param {Stored} sending
 * @param {Next} decided
 * @param {{ answer: KeptAnswer | null, message: string }} seen
 * @param {number} now
 * @returns {Stored | Done}
 */
export function settled(sending, decided, seen, now) {
  if (decided.next === 'done' && seen.answer !== null) {
    const { id, intent, createdAt, sent } = sending;
    return { id, intent, createdAt, sent, answer: seen.answer };
  }
  /** @type {Stored} */
  const rest = { ...sending, cause: 'auto', lease: null, inFlight: false, answer: seen.answer, error: seen.message };
  if (decided.next === 'again') {
    const isSilent = seen.answer === null;
    return {
      ...rest,
      phase: 'waiting',
      failed: decided.attempts.failed,
      unanswered: isSilent ? sending.unanswered + 1 : 0,
      inFlight: decided.inFlight,
      effect: decided.attempts.effect,
      error: decided.inFlight ? null : seen.message,
      waitFrom: now,
      dueAt: now + decided.waitMs,
    };
  }
  const effect = decided.next === 'done' ? 'unknown' : decided.effect;
  return { ...rest, phase: 'failed', effect, canRetry: canHelp(decided, seen.answer) };
}

/**
 * Whether the same request can have another outcome: if the outcome is unknown, or if the person was not authorized.
 *
 * @param {Next} decided
 * @param {KeptAnswer | null} answer
 */
function canHelp(decided, answer) {
  const isOpen = decided.next === 'refused' && decided.effect === 'unknown';
  return decided.next === 'give_up' || isOpen || answer?.status === 401 || answer?.status === 403;
}

/**
 * Returns what is known about the effect of all attempts before the claimed one.
 *
 * @param {Stored} sending
 * @returns {{ sent: number, failed: number, effect: Effect }}
 */
export function triesBefore(sending) {
  return { sent: sending.sent - 1, failed: sending.failed, effect: sending.effect };
}

/**
 * Takes over an entry from a page that died: its request may have arrived.
 *
 * @param {Stored} entry
 * @returns {Stored}
 */
export function taken(entry) {
  return entry.phase === 'sending' ? { ...entry, effect: after(entry.effect, 'unknown'), cause: 'auto' } : entry;
}

/**
 * @param {Stored} entry
 * @param {number} now
 * @returns {Stored}
 */
export function retried(entry, now) {
  if (entry.phase === 'held') {
    throw new Error(`entry ${entry.id} is held: it may have been done, and the server may have forgotten its key; release or discard it`);
  }
  if (entry.phase !== 'failed') throw new Error(`entry ${entry.id} has not failed: it is sent automatically`);
  if (!entry.canRetry) throw new Error(`entry ${entry.id} was refused, and a retry would not help: ${entry.error}`);
  return again(entry, now);
}

/**
 * @param {Stored} entry
 * @param {number} now
 * @returns {Stored}
 */
export function released(entry, now) {
  if (entry.phase !== 'held') throw new Error(`entry ${entry.id} is not held; only a held entry can be released`);
  return { ...again(entry, now), coveredSince: now };
}

/**
 * @param {Stored} entry
 * @param {number} now
 * @returns {Stored}
 */
function again(entry, now) {
  const fresh = { failed: 0, unanswered: 0, waitFrom: now, dueAt: now, error: null, canRetry: false };
  return { ...entry, ...fresh, phase: 'waiting', cause: 'manual' };
}

/**
 * The network is back: an entry that waits after attempts without a response is due now. A wait that a server asked for stays.
 *
 * @param {Stored} entry
 * @param {number} now
 * @returns {Stored | null} `null` if nothing changes
 */
export function hurried(entry, now) {
  const waits = entry.phase === 'waiting' && 0 < entry.unanswered && now < entry.dueAt;
  return waits ? { ...entry, waitFrom: now, dueAt: now } : null;
}

/**
 * Whether a second click with the same intent is this action. An entry that was refused without an effect is no longer open.
 *
 * @param {Stored} entry
 */
export function isOpen(entry) {
  return entry.phase !== 'failed' || entry.canRetry || entry.effect !== 'not_done';
}

/**
 * @param {Entered} one
 * @param {Entered} other
 */
export function isSameRequest(one, other) {
  return one.method === other.method && one.url === other.url && isSameBody(one.body, other.body);
}

/**
 * @param {Uint8Array | null} one
 * @param {Uint8Array | null} other
 */
function isSameBody(one, other) {
  if (one === null || other === null) return one === other;
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}

/**
 * Returns what a page shows.
 *
 * @param {Stored | Done} entry
 * @param {string | null} obstacle why this page cannot send at all
 * @returns {Entry}
 */
export function view(entry, obstacle = null) {
  const { id, intent, createdAt, sent: attempts, answer } = entry;
  if (!('phase' in entry)) {
    const done = { state: /** @type {State} */ ('done'), canRetry: false, isHeld: false, effect: /** @type {Effect} */ ('done') };
    return { id, intent, ...done, errorMessage: null, attempts, createdAt, nextAttemptAt: null, answer };
  }
  const isOver = entry.phase === 'failed' || entry.phase === 'held';
  return {
    id,
    intent,
    state: stateOf(entry),
    canRetry: entry.phase === 'failed' && entry.canRetry,
    errorMessage: entry.error ?? (isOver ? null : obstacle),
    isHeld: entry.phase === 'held',
    attempts,
    createdAt,
    nextAttemptAt: entry.phase === 'waiting' ? entry.dueAt : null,
    effect: entry.phase === 'sending' ? after(entry.effect, 'unknown') : entry.effect,
    answer,
  };
}

/**
 * @param {Stored} entry
 * @returns {State}
 */
function stateOf(entry) {
  if (entry.phase === 'failed' || entry.phase === 'held') return 'failed';
  if (entry.inFlight) return 'processing';
  return entry.error === null ? 'saving' : 'retrying';
}
