// The page under test. Its clock runs fast, so waits of seconds take a moment; it is the same in all tabs.
import { Queue } from '/ichido.js';

const SPEED = 25;
// The start of the week: a run that begins on one day and ends on the next has one clock.
const WEEK_MS = 7 * 86_400_000;
const since = Math.floor(Date.now() / WEEK_MS) * WEEK_MS;

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

/** Settings that a test overrides, for every tab and after every reload. */
const wanted = JSON.parse(localStorage.getItem('wanted') ?? '{}');
if (wanted.locks === null) outside.locks = null;
// Time stops and no wait ends, so anything that happens has another trigger.
if (wanted.timers === null) {
  outside.now = () => since;
  outside.wait = (_, signal) => new Promise((resolve) => signal.addEventListener('abort', resolve));
}

window.open_ = (settings = {}) => {
  const { locks, timers, namesId, ...rest } = { ...wanted, ...settings };
  if (namesId) rest.isOurs = (answer) => typeof answer.json()?.id === 'string';
  // Real time: a busy machine must not look like a silent server.
  return Queue.open({ identity: 'ann', attemptTimeoutMs: 20_000 * SPEED, ...rest, outside });
};
window.changes = [];
window.queue = await window.open_();
window.queue.subscribe((change) => window.changes.push(change));
window.press = (body, draft = {}) => window.queue.enqueue({ url: '/v1/queues/orders/messages', body, ...draft });
window.isReady = true;
