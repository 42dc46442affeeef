// @ts-check
/**
 * The environment: clock, random numbers and network, real or from a test; and checks of settings.
 *
 * Guarantee: no other module uses the time, randomness or the network directly.
 *
 * @module
 */

/** @typedef {import('./ichido.d.ts').Outside} Outside */

/** The longest wait of a platform timer. For a longer wait, look again after it. */
export const MAX_TIMER_MS = 2 ** 31 - 1;
/** The maximum of every time setting. */
export const MAX_TIME_MS = 30 * 24 * 60 * 60 * 1000;
/** The maximum of every size setting. */
export const MAX_BYTES = 16 * 1024 * 1024;

/**
 * @param {Partial<Outside>} given
 * @returns {Outside}
 */
export function outsideOf(given = {}) {
  return {
    fetch: (url, init) => globalThis.fetch(url, init),
    now: () => Date.now(),
    elapsed: () => performance.now(),
    wait,
    dice: () => Math.random(),
    // Only a clear "no" counts: a browser that says "yes" has a network interface, but maybe no network.
    isOnline: () => globalThis.navigator?.onLine !== false,
    locks: globalThis.navigator?.locks ?? null,
    ...given,
  };
}

/**
 * @param {number} ms
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
function wait(ms, signal) {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const timer = setTimeout(done, Math.min(ms, MAX_TIMER_MS));
    function done() {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
    signal.addEventListener('abort', done);
  });
}

/** Whether this is a page or its worker. */
export function isBrowser() {
  return typeof globalThis.window === 'object' || typeof (/** @type {any} */ (globalThis).WorkerGlobalScope) === 'function';
}

/**
 * Returns a setting's number, and adds an error if it is out of range.
 *
 * @param {string[]} problems
 * @param {string} place
 * @param {number | undefined} value
 * @param {number} otherwise
 * @param {[number, number]} range
 * @returns {number}
 */
export function within(problems, place, value, otherwise, [first, last]) {
  const found = value ?? otherwise;
  if (typeof found !== 'number' || !(first <= found && found <= last)) {
    problems.push(`${place} is ${String(found)}; it must be a number from ${first} to ${last}`);
  }
  return found;
}

/**
 * @template T
 * @param {string[]} problems
 * @param {string} place
 * @param {T | undefined} value
 * @param {readonly [T, ...T[]]} choices the first is the default
 * @returns {T}
 */
export function oneOf(problems, place, value, choices) {
  const found = value ?? choices[0];
  if (!choices.includes(found)) problems.push(`${place} is ${String(found)}; it must be one of ${choices.join(', ')}`);
  return found;
}

/**
 * Throws all errors at once.
 *
 * @param {string[]} problems
 */
export function refuse(problems) {
  if (problems.length) throw new TypeError(problems.join('\n'));
}
