// @ts-check
/**
 * Ichido for browsers and Node: one key for one action, retried until its outcome is known, and done once.
 *
 * Start at `Queue` (browser) or at `Client` (browser and Node). `ichido.d.ts` describes all of it.
 *
 * @module
 */

export { Client } from './client.js';
export { newKey } from './key.js';
export { CLIENT_RETRY, decide, NO_ATTEMPTS } from './next.js';
export { Queue } from './queue.js';
export { drainOnSync } from './sw.js';
