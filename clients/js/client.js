// @ts-check
/**
 * The client: makes attempts, waits between them, and returns the outcome.
 *
 * Guarantee: every attempt of an action has the same key and the same bytes, and `next.js` makes the decisions. It ends within the
 * total timeout. Credentials are fetched before each attempt and never stored.
 *
 * @module
 */

import { checkKey } from './key.js';
import { Budget, BUDGET, CLIENT_RETRY, decide, NO_ATTEMPTS, MAX_ATTEMPTS, MAX_WAIT_MS } from './next.js';
import { MAX_BYTES, isBrowser, oneOf, outsideOf, refuse, MAX_TIME_MS, within } from './outside.js';
import { checkFields, checkHop, CREDENTIALS_MODES, exchange, requestOf, tryFields, urlOf } from './wire.js';

/** @typedef {import('./ichido.d.ts').Action} Action */
/** @typedef {import('./ichido.d.ts').ClientSettings} ClientSettings */
/** @typedef {import('./ichido.d.ts').Outcome} Outcome */
/** @typedef {import('./ichido.d.ts').Safety} Safety */
/** @typedef {import('./wire.js').Request} Request */

/** The supported profiles. */
export const PROFILES = /** @type {const} */ (['ichido', 'ietf', 'stripe']);

/** Why an action was not retried, as text. */
const WORDS = {
  attempts_spent: 'every allowed attempt was made',
  asked_to_wait: 'the server asks for a later retry',
  out_of_time: 'the next attempt would be after the total timeout',
  another_key: 'the response is for a different idempotency key than the one sent',
  no_key:
    'the request changes state, has no idempotency key, and may have taken effect: a retry could repeat the effect; check whether it took effect, and use a key next time',
  budget_spent: 'too many calls failed and were retried, so the shared retry budget is spent; it refills as calls succeed',
  stopped: 'the caller stopped it',
};

export class Client {
  /** @param {ClientSettings} settings */
  constructor(settings = {}) {
    /** @type {string[]} */
    const problems = [];
    const retry = { ...CLIENT_RETRY, ...settings.retry };
    within(problems, 'retry.attempts', retry.attempts, 3, [1, MAX_ATTEMPTS]);
    within(problems, 'retry.baseMs', retry.baseMs, 0, [0, MAX_WAIT_MS]);
    within(problems, 'retry.factor', retry.factor, 2, [1, 100]);
    within(problems, 'retry.capMs', retry.capMs, 0, [retry.baseMs, MAX_WAIT_MS]);
    within(problems, 'retry.jitter', retry.jitter, 0, [0, 1]);
    this.attemptTimeoutMs = within(problems, 'attemptTimeoutMs', settings.attemptTimeoutMs, 30_000, [1, MAX_TIME_MS]);
    this.totalTimeoutMs = within(problems, 'totalTimeoutMs', settings.totalTimeoutMs, 120_000, [1, MAX_TIME_MS]);
    this.maxResponseBytes = within(problems, 'maxResponseBytes', settings.maxResponseBytes, 1 << 20, [1, MAX_BYTES]);
    this.rules = {
      retry,
      retryAfterMaxMs: within(problems, 'retryAfterMaxMs', settings.retryAfterMaxMs, 60_000, [0, MAX_TIME_MS]),
      profile: oneOf(problems, 'profile', settings.profile, PROFILES),
    };
    this.credentials = oneOf(problems, 'credentials', settings.credentials, CREDENTIALS_MODES);
    this.hop = settings.hop === undefined ? (isBrowser() ? 'browser' : null) : settings.hop;
    checkHop(problems, this.hop);
    refuse(problems);
    this.baseUrl = settings.baseUrl;
    this.authorize = settings.authorize ?? (() => ({}));
    this.budget = new Budget(settings.budget ?? BUDGET);
    this.outside = outsideOf(settings.outside);
  }

  /**
   * @param {Action} action
   * @param {{ signal?: AbortSignal }} options
   * @returns {Promise<Outcome>}
   */
  async send(action, options = {}) {
    const key = action.key === undefined ? null : checkKey(action.key);
    const request = { ...requestOf(action, this.baseUrl), key };
    const { cause = 'manual', triesBefore = 0 } = action;
    const fieldsOf = (/** @type {number} */ sent) =>
      tryFields(this.rules.profile, triesBefore + sent + 1, sent === 0 ? cause : 'auto', this.hop, this.outside.now());
    return this.#ask(request, key === null ? 'none' : 'keyed', fieldsOf, options.signal ?? null);
  }

  /**
   * @param {string} url
   * @param {{ signal?: AbortSignal, headers?: import('./ichido.d.ts').Fields }} options
   * @returns {Promise<Outcome>}
   */
  async read(url, options = {}) {
    const headers = checkFields(options.headers ?? {});
    const request = { method: 'GET', url: urlOf(url, this.baseUrl), key: null, headers, body: null };
    return this.#ask(request, 'idempotent', () => ({}), options.signal ?? null);
  }

  /**
   * @param {Request} request
   * @param {Safety} safety
   * @param {(sent: number) => Record<string, string>} fieldsOf
   * @param {AbortSignal | null} signal
   * @returns {Promise<Outcome>}
   */
  async #ask(request, safety, fieldsOf, signal) {
    const deadline = this.outside.elapsed() + this.totalTimeoutMs;
    const leftMs = () => Math.max(0, deadline - this.outside.elapsed());
    let attempts = { ...NO_ATTEMPTS };
    for (;;) {
      const fields = { ...(await this.authorize()), ...fieldsOf(attempts.sent) };
      if (signal?.aborted && attempts.sent === 0) return gaveUp('stopped', null, null, attempts.effect, 0);
      const way = {
        timeoutMs: Math.min(this.attemptTimeoutMs, leftMs()),
        maxResponseBytes: this.maxResponseBytes,
        credentials: this.credentials,
        keepalive: false,
        fields,
        signal,
      };
      const { seen, answer } = await exchange(this.outside, request, way);
      const moment = { now: this.outside.now(), leftMs: leftMs() };
      const decided = decide(this.rules, safety, attempts, seen, moment, this.outside.dice());
      const sent = attempts.sent + 1;
      if (decided.next === 'done' && answer) {
        // Only a call that succeeds without a failure before it adds to the budget.
        if (attempts.failed === 0) this.budget.earn();
        return { kind: 'done', answer, attempts: sent };
      }
      if (decided.next === 'refused' && answer) return refused(decided, answer, sent);
      if (decided.next === 'give_up') return gaveUp(decided.why, decided.comeBackAt, answer, decided.effect, sent);
      // Only a response can be a success or a refusal; a fault leaves the effect unknown.
      if (decided.next !== 'again') return gaveUp('attempts_spent', null, answer, 'unknown', sent);
      attempts = decided.attempts;
      // Polling an action in flight costs no budget: the server is healthy.
      if (!decided.inFlight && !this.budget.spend()) return gaveUp('budget_spent', null, answer, attempts.effect, sent);
      if (!signal?.aborted) await this.outside.wait(decided.waitMs, signal ?? new AbortController().signal);
      if (signal?.aborted) return gaveUp('stopped', null, answer, attempts.effect, sent);
    }
  }
}

/**
 * @param {{ effect: import('./ichido.d.ts').Effect, reason: import('./ichido.d.ts').Refusal }} decided
 * @param {import('./wire.js').Answer} answer
 * @param {number} attempts
 * @returns {Outcome}
 */
function refused({ effect, reason }, answer, attempts) {
  return { kind: 'refused', reason, answer, effect, attempts };
}

/**
 * @param {import('./ichido.d.ts').Why} why
 * @param {number | null} comeBackAt
 * @param {import('./wire.js').Answer | null} last
 * @param {import('./ichido.d.ts').Effect} effect
 * @param {number} attempts
 * @returns {Outcome}
 */
function gaveUp(why, comeBackAt, last, effect, attempts) {
  const when = comeBackAt === null ? '' : `: not before ${new Date(comeBackAt).toISOString()}`;
  return { kind: 'gave_up', why, message: WORDS[why] + when, comeBackAt, last, effect, attempts };
}

/** @param {import('./ichido.d.ts').Why} why */
export function wordsOf(why) {
  return WORDS[why];
}
