// @ts-check
/**
 * For a service worker: sends waiting entries when Background Sync says that the network is back.
 *
 * Guarantee: the sync succeeds only when nothing waits any more; otherwise the browser may call it again.
 *
 * @module
 */

import { SYNC_TAG } from './queue.js';

/** @param {() => Promise<import('./queue.js').Queue | null>} open */
export function drainOnSync(open) {
  globalThis.addEventListener('sync', (event) => {
    const sync = /** @type {any} */ (event);
    if (sync.tag === SYNC_TAG) sync.waitUntil(drain(open));
  });
}

/** @param {() => Promise<import('./queue.js').Queue | null>} open */
async function drain(open) {
  const queue = await open();
  if (queue === null) return;
  try {
    const waiting = await queue.drain();
    if (0 < waiting) throw new Error(`${waiting} entries still wait to be sent`);
  } finally {
    queue.close();
  }
}
