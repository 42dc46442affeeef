// The page under test. Its clock runs ahead of the world's, so that waits of seconds take a moment; it is the same in all tabs.
import { Queue } from '/ichido.js';

const SPEED = 25;
const since = Math.floor(Date.now() / 86_400_000) * 86_400_000;

export const outside = {
  now: () => since + (Date.now() - since) * SPEED + Number(localStorage.getItem('aheadMs') ?? 0),
  elapsed: () => performance.now() * SPEED,
  wait: (ms, signal) =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.min(ms / SPEED, 2 ** 31 - 1));
      signal.addEventListener('abort', () => {
        clearTimeout(timer);
        resolve();
      });
    }),
};

/** Settings that a test wants otherwise, and that must hold for every tab and after every reload. */
const wanted = JSON.parse(localStorage.getItem('wanted') ?? '{}');
if (wanted.locks === null) outside.locks = null;
// Time stands still, and no wait ends by itself: what happens all the same happened by another way.
if (wanted.timers === null) {
  outside.now = () => since;
  outside.wait = (_, signal) => new Promise((resolve) => signal.addEventListener('abort', resolve));
}

window.open_ = (settings = {}) => {
  const { locks, timers, namesId, ...rest } = { ...wanted, ...settings };
  if (namesId) rest.isOurs = (answer) => typeof answer.json()?.id === 'string';
  // Real time: a machine that is busy must not look like a server that is silent.
  return Queue.open({ identity: 'ann', tryTimeOutMs: 20_000 * SPEED, ...rest, outside });
};
window.changes = [];
window.queue = await window.open_();
window.queue.subscribe((change) => window.changes.push(change));
window.press = (body, draft = {}) => window.queue.enqueue({ url: '/v1/queues/orders/messages', body, ...draft });
window.isReady = true;
