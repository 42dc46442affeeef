// @ts-check
/**
 * Decides what to do after an attempt, without a clock, a socket or random numbers of its own.
 *
 * Guarantee: an action is retried only after a network fault, a 5xx, 408 or 429, or while the server says that it is still in flight;
 * never sooner than the server asked, never more often than the rules allow, never after the deadline; and without a key only with proof
 * that nothing was done. After giving up, the outcome says what is known about the effect of all attempts together.
 *
 * The decisions are the same as in the Rust crate `ichido-client`. The tests of both read `test/decisions.json`.
 *
 * @module
 */

/** @typedef {import('./ichido.d.ts').Effect} Effect */
/** @typedef {import('./ichido.d.ts').Next} Next */
/** @typedef {import('./ichido.d.ts').Profile} Profile */
/** @typedef {import('./ichido.d.ts').Retry} Retry */
/** @typedef {import('./ichido.d.ts').Rules} Rules */
/** @typedef {import('./ichido.d.ts').Safety} Safety */
/** @typedef {import('./ichido.d.ts').Seen} Seen */
/** @typedef {import('./ichido.d.ts').Attempts} Attempts */
/** @typedef {import('./ichido.d.ts').BudgetSettings} BudgetSettings */

/** The longest wait that any schedule or server can ask for: 30 days. */
export const MAX_WAIT_MS = 30 * 24 * 60 * 60 * 1000;
/** The maximum number of requests for one action, including polls while it is in flight. */
export const MAX_ATTEMPTS = 1000;
/** The longest wait of the queue after an attempt without a response. */
export const MAX_UNANSWERED_WAIT_MS = 60 * 1000;
/** The longest `Retry-After` that a queue waits for. If the server asks for more, the entry fails until a person retries it. */
export const MAX_QUEUE_RETRY_AFTER_MS = 24 * 60 * 60 * 1000;

/** @type {Readonly<Retry>} */
export const CLIENT_RETRY = Object.freeze({ attempts: 3, baseMs: 1000, factor: 2, capMs: MAX_WAIT_MS, jitter: 0.1 });

/** @type {Readonly<Attempts>} */
export const NO_ATTEMPTS = Object.freeze({ sent: 0, failed: 0, effect: 'not_done' });

/**
 * @param {Rules} rules
 * @param {Safety} safety
 * @param {Attempts} before the attempts before this one
 * @param {Seen} seen
 * @param {{ now: number, leftMs: number }} moment
 * @param {number} dice
 * @returns {Next}
 */
export function decide(rules, safety, before, seen, moment, dice) {
  const isKeyed = safety === 'keyed';
  // If no key was sent, no response is about one: a 409 or a 422 has its usual meaning.
  const verdict = judge(isKeyed ? rules.profile : 'ichido', seen);
  const effect = after(before.effect, verdict.effect);
  const inFlight = verdict.advice === 'ask_again';
  const attempts = { sent: before.sent + 1, failed: before.failed + (inFlight ? 0 : 1), effect };
  switch (verdict.advice) {
    case 'accept':
      return { next: 'done' };
    case 'refuse':
      return { next: 'refused', effect, reason: verdict.isConflict ? 'key_conflict' : 'by_server' };
    case 'doubt':
      return giveUp('another_key', effect);
    case 'retry':
    case 'ask_again':
      if (!mayRepeat(safety, effect)) return giveUp('no_key', effect);
      // The server replays a stored failure on every retry.
      if (isKeyed && !inFlight && 'answer' in seen && saysReplay(seen.answer.headers)) {
        return { next: 'refused', effect, reason: 'kept_failure' };
      }
      return again(rules, attempts, inFlight, hintOf(seen, moment.now), moment, dice);
  }
}

/**
 * The same for an entry of a durable queue, which can wait for a long time: a `Retry-After` of up to a day is respected, and there is no
 * deadline except the age of the key.
 *
 * An attempt without a response does not count as one of the three. A browser never says why a request failed: a phone in a tunnel, a
 * portal that requires a login and a server that is down look the same, `navigator.onLine` is true in all of them, and three such attempts
 * pass within seconds. So only responses count; attempts without one are limited by `MAX_ATTEMPTS`, by growing waits, and by the age of the
 * key.
 *
 * @param {Rules} rules
 * @param {Attempts} before
 * @param {number} unanswered consecutive attempts without a response, before this one
 * @param {Seen} seen
 * @param {number} now
 * @param {number} dice
 * @returns {Next}
 */
export function decideInQueue(rules, before, unanswered, seen, now, dice) {
  if ('answer' in seen) {
    const patient = { ...rules, retryAfterMaxMs: MAX_QUEUE_RETRY_AFTER_MS };
    return decide(patient, 'keyed', before, seen, { now, leftMs: Infinity }, dice);
  }
  const effect = after(before.effect, judge(rules.profile, seen).effect);
  const attempts = { sent: before.sent + 1, failed: before.failed, effect };
  if (MAX_ATTEMPTS <= attempts.sent) return giveUp('attempts_spent', effect);
  const patient = { ...rules.retry, capMs: Math.min(rules.retry.capMs, MAX_UNANSWERED_WAIT_MS) };
  return { next: 'again', waitMs: waitMs(patient, unanswered + 1, dice, null), inFlight: false, attempts };
}

/**
 * @param {Rules} rules
 * @param {Attempts} attempts including this one
 * @param {boolean} inFlight
 * @param {number | null} hintMs
 * @param {{ now: number, leftMs: number }} moment
 * @param {number} dice
 * @returns {Next}
 */
function again(rules, attempts, inFlight, hintMs, moment, dice) {
  if (Math.min(rules.retry.attempts, MAX_ATTEMPTS) <= attempts.failed || MAX_ATTEMPTS <= attempts.sent) {
    return giveUp('attempts_spent', attempts.effect);
  }
  if (hintMs !== null && rules.retryAfterMaxMs < hintMs) {
    return giveUp('asked_to_wait', attempts.effect, moment.now + hintMs);
  }
  // A server that is still working is polled with the wait of a first failure, or its own: only failures make the waits grow.
  const wait = waitMs(rules.retry, inFlight ? 1 : attempts.failed, dice, hintMs);
  if (moment.leftMs <= wait) return giveUp('out_of_time', attempts.effect, moment.now + wait);
  return { next: 'again', waitMs: wait, inFlight, attempts };
}

/**
 * @param {import('./ichido.d.ts').Why} why
 * @param {Effect} effect
 * @param {number | null} comeBackAt
 * @returns {Next}
 */
function giveUp(why, effect, comeBackAt = null) {
  return { next: 'give_up', why, comeBackAt, effect };
}

/**
 * Returns the wait after failure `nth`, from 1. The server's hint is a minimum, with the jitter on top: callers that got the same hint
 * must not all retry at that moment.
 *
 * @param {Retry} retry
 * @param {number} nth
 * @param {number} dice
 * @param {number | null} hintMs
 */
export function waitMs(retry, nth, dice, hintMs) {
  const share = 1 + retry.jitter * Math.min(Math.max(dice, 0), 1);
  const own = Math.min(retry.baseMs * retry.factor ** (nth - 1), retry.capMs, MAX_WAIT_MS) * share;
  return hintMs === null ? own : Math.max(own, Math.min(hintMs, MAX_WAIT_MS) * share);
}

/**
 * Returns what is known after a further attempt: done stays done, and unknown stays until something settles it.
 *
 * @param {Effect} before
 * @param {Effect} next
 * @returns {Effect}
 */
export function after(before, next) {
  if (before === 'done' || next === 'done') return 'done';
  return before === 'unknown' || next === 'unknown' ? 'unknown' : 'not_done';
}

/**
 * @param {Safety} safety
 * @param {Effect} effect
 */
function mayRepeat(safety, effect) {
  return effect === 'not_done' || safety === 'idempotent' || (effect === 'unknown' && safety === 'keyed');
}

// ---------------------------------------------------------------- what a response means

/** @typedef {'accept' | 'refuse' | 'retry' | 'ask_again' | 'doubt'} Advice */
/** @typedef {{ advice: Advice, effect: Effect, isConflict?: boolean }} Verdict */

/** @type {Verdict} */
const IN_FLIGHT = { advice: 'ask_again', effect: 'unknown' };
/** @type {Verdict} */
const HELD = { advice: 'refuse', effect: 'unknown' };
/** The key was used for a different request: the action may have been done, with other bytes. @type {Verdict} */
const KEY_CONFLICT = { advice: 'refuse', effect: 'unknown', isConflict: true };

/**
 * Judges one attempt, like `Table::client_of` in `ichido-core`.
 *
 * @param {Profile} profile
 * @param {Seen} seen
 * @returns {Verdict}
 */
function judge(profile, seen) {
  if ('fault' in seen) return { advice: 'retry', effect: seen.fault === 'never_sent' ? 'not_done' : 'unknown' };
  const { answer } = seen;
  // A response for another key says nothing about our call.
  if (answer.echo === 'other') return { advice: 'doubt', effect: 'unknown' };
  // An idempotency layer's "still in flight" is never an outcome.
  if (answer.status === 202 && isField(answer.headers, 'idempotency-status', 'processing')) return IN_FLIGHT;
  // The server holds the key until a person decides: a retry would get 409.
  if (500 <= answer.status && answer.status <= 599 && isField(answer.headers, 'idempotency-status', 'unknown')) return HELD;
  return OF_PROFILE[profile](answer) ?? ofStatus(answer.status);
}

/** @typedef {{ status: number, headers: Headers, names: readonly string[] }} Named */

/** What servers of each profile say differently. @type {Record<Profile, (answer: Named) => Verdict | null>} */
const OF_PROFILE = {
  ichido: ({ status, names }) => (status === 409 && names.includes('key_conflict') ? KEY_CONFLICT : null),
  // In the draft 409 is "still in flight" and 422 "used for a different request", and nothing distinguishes them from an API's own.
  ietf: ({ status, headers, names }) => {
    if (status === 422) return names.includes('key_mismatch') ? null : KEY_CONFLICT;
    if (status !== 409) return null;
    // A retry changes neither: the first waits for a person, the second was done.
    if (names.includes('outcome_unknown') || names.includes('response_not_stored')) return { advice: 'refuse', effect: 'unknown' };
    if (names.includes('key_in_flight') || hintIn(headers, 0) !== null) return IN_FLIGHT;
    // In flight, or a conflict of the API's own: with a key it is safe to retry, but not forever.
    return { advice: 'retry', effect: 'unknown' };
  },
  stripe: ({ status, names }) => {
    const isNamed = (/** @type {string[]} */ ...wanted) => wanted.some((name) => names.includes(name));
    if (status === 409 && isNamed('idempotency_key_in_use', 'key_in_flight')) return IN_FLIGHT;
    if (status === 409 && isNamed('key_conflict')) return KEY_CONFLICT;
    return status === 400 && isNamed('idempotency_error', 'key_conflict') ? KEY_CONFLICT : null;
  },
};

/**
 * @param {number} status
 * @returns {Verdict}
 */
function ofStatus(status) {
  const isIn = (/** @type {number} */ first, /** @type {number} */ last) => first <= status && status <= last;
  if (isIn(200, 299)) return { advice: 'accept', effect: 'done' };
  if (status === 429) return { advice: 'retry', effect: 'not_done' };
  if (status === 408 || isIn(500, 599)) return { advice: 'retry', effect: 'unknown' };
  // A 307 or 308 was not done here; any other redirect may be the response to work that was done.
  if (status === 307 || status === 308) return { advice: 'refuse', effect: 'not_done' };
  // A conflict may mean that it was done before, by us or by another.
  if (status === 409) return { advice: 'refuse', effect: 'unknown' };
  if (isIn(400, 499)) return { advice: 'refuse', effect: 'not_done' };
  if (isIn(300, 399) || isIn(600, 999)) return { advice: 'refuse', effect: 'unknown' };
  return { advice: 'retry', effect: 'unknown' };
}

/**
 * Whether the server says that this is a replay: the outcome of the first request with this key.
 *
 * @param {Headers} headers
 */
export function saysReplay(headers) {
  return isField(headers, 'idempotency-replayed', 'true') || isField(headers, 'idempotent-replayed', 'true');
}

/**
 * @param {Headers} headers
 * @param {string} name
 * @param {string} value
 */
function isField(headers, name, value) {
  return (headers.get(name) ?? '').trim().toLowerCase() === value;
}

/**
 * Returns all error codes in a body, as problem details, Stripe and others write them.
 *
 * @param {number} status
 * @param {any} body parsed
 * @returns {string[]}
 */
export function namesOf(status, body) {
  if (status < 400) return [];
  const { error } = body ?? {};
  const places = [error?.details?.error_code, error?.code, error?.type, error, body?.code, body?.__type, body?.type];
  // `com.amazon#ThrottlingException:http://…` is `ThrottlingException`.
  const bare = (/** @type {string} */ name) => name.slice(name.lastIndexOf('#') + 1).replace(/:[^]*$/, '').trim();
  return places.filter((name) => typeof name === 'string').map(bare);
}

// ---------------------------------------------------------------- how long the server asks to wait

/** Headers in milliseconds. They are finer than `Retry-After` and override it. */
const MILLISECOND_FIELDS = ['retry-after-ms', 'x-ms-retry-after-ms', 'x-amz-retry-after'];

/**
 * @param {Seen} seen
 * @param {number} now
 * @returns {number | null}
 */
function hintOf(seen, now) {
  return 'fault' in seen ? null : hintIn(seen.answer.headers, now);
}

/**
 * @param {Headers} headers
 * @param {number} now
 * @returns {number | null}
 */
function hintIn(headers, now) {
  const exact = MILLISECOND_FIELDS.map((name) => longest(headers.get(name), (value) => decimal(value, 1)));
  const finest = exact.reduce(greater, null);
  return finest ?? longest(headers.get('retry-after'), (value) => retryAfter(value, now));
}

/**
 * Of several lines the longest wait counts, because each asks for at least that long. `Headers` joins them with commas, and a date
 * contains a comma of its own.
 *
 * @param {string | null} value
 * @param {(value: string) => number | null} read
 */
function longest(value, read) {
  if (value === null) return null;
  return read(value) ?? value.split(/,(?! \d\d[ -])/).map(read).reduce(greater, null);
}

/**
 * @param {number | null} one
 * @param {number | null} other
 */
function greater(one, other) {
  return one === null || (other !== null && one < other) ? other : one;
}

/**
 * Parses `Retry-After` to milliseconds: seconds, or an HTTP date (a past one means at once). Returns `null` if it is neither.
 *
 * @param {string} value
 * @param {number} now
 */
export function retryAfter(value, now) {
  const seconds = decimal(value, 1000);
  if (seconds !== null) return seconds;
  const date = httpDate(value.trim());
  return date === null ? null : Math.min(Math.max(date - now, 0), MAX_WAIT_MS);
}

/**
 * @param {string} value
 * @param {number} unitMs
 */
function decimal(value, unitMs) {
  return /^\d+(\.\d+)?$/.test(value.trim()) ? Math.min(Number(value) * unitMs, MAX_WAIT_MS) : null;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
/** The three formats that RFC 9110 requires. `Date.parse` accepts many more, and differs between browsers. */
const DATES = [
  /^\w{3}, (?<day>\d\d) (?<month>\w{3}) (?<year>\d{4}) (?<h>\d\d):(?<m>\d\d):(?<s>\d\d) GMT$/,
  /^\w+day, (?<day>\d\d)-(?<month>\w{3})-(?<year>\d\d) (?<h>\d\d):(?<m>\d\d):(?<s>\d\d) GMT$/,
  /^\w{3} (?<month>\w{3}) (?<day>[ \d]\d) (?<h>\d\d):(?<m>\d\d):(?<s>\d\d) (?<year>\d{4})$/,
];

/**
 * @param {string} value
 * @returns {number | null}
 */
function httpDate(value) {
  for (const form of DATES) {
    const { day, month, year, h, m, s } = form.exec(value)?.groups ?? {};
    const index = MONTHS.indexOf(month ?? '');
    if (day === undefined || year === undefined || index < 0) continue;
    // Two digits: 70 and later belong to the last century.
    const full = year.length === 2 ? Number(year) + (Number(year) < 70 ? 2000 : 1900) : Number(year);
    return Date.UTC(full, index, Number(day), Number(h), Number(m), Number(s));
  }
  return null;
}

// ---------------------------------------------------------------- the budget

/** At most 10 retries, and one more for every five calls that succeed on the first attempt. */
export const BUDGET = Object.freeze({ capacity: 1000, earnedPerSuccess: 20 });
/** The cost of one retry, in hundredths. Whole numbers, because sums of fractions drift. */
const RETRY_COST = 100;

/** Retries are a share of the calls that succeed, so they do not overload a failing server. */
export class Budget {
  /** @param {BudgetSettings} settings */
  constructor(settings) {
    this.settings = settings;
    /** Full: a client that has just started may retry. */
    this.tokens = settings.capacity;
  }

  /** A call succeeded on its first attempt. */
  earn() {
    this.tokens = Math.min(this.tokens + this.settings.earnedPerSuccess, this.settings.capacity);
  }

  /** Pays for one retry. Returns `false` if the budget is spent and the failure must stand. */
  spend() {
    if (this.tokens < RETRY_COST) return false;
    this.tokens -= RETRY_COST;
    return true;
  }
}
