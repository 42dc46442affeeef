// @ts-check
/**
 * The world outside: clock, dice and network, as they are or as a test gives them; and settings, checked.
 *
 * Guarantee: nothing else in this module asks for the time, for chance or for the network by itself.
 *
 * @module
 */

/** @typedef {import('./ichido.d.ts').Outside} Outside */

/** The longest that a timer of the platform can wait. Whoever wants more looks again after it. */
export const TIMER_MS_MAX = 2 ** 31 - 1;
/** The longest time that any setting may give. */
export const TIME_MS_MAX = 30 * 24 * 60 * 60 * 1000;
/** The largest answer, or body, that may be asked for. */
export const BYTES_MAX = 16 * 1024 * 1024;

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
    // Only a clear "no" is believed: a browser that says "yes" has an interface, and maybe no network behind it.
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
    const timer = setTimeout(done, Math.min(ms, TIMER_MS_MAX));
    function done() {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
    signal.addEventListener('abort', done);
  });
}

/** Whether this is a page or a worker of one. */
export function isBrowser() {
  return typeof globalThis.window === 'object' || typeof (/** @type {any} */ (globalThis).WorkerGlobalScope) === 'function';
}

/**
 * A number of a setting, or everything that is wrong with it.
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
 * @param {readonly [T, ...T[]]} choices the first is the usual one
 * @returns {T}
 */
export function oneOf(problems, place, value, choices) {
  const found = value ?? choices[0];
  if (!choices.includes(found)) problems.push(`${place} is ${String(found)}; it must be one of ${choices.join(', ')}`);
  return found;
}

/**
 * All that is wrong at once.
 *
 * @param {string[]} problems
 */
export function refuse(problems) {
  if (problems.length) throw new TypeError(problems.join('\n'));
}
