// The server is killed, or its database stops, while a page is open: the page says so, and recovers when it is back.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { IN_SOAK, notice, on, Stage, until, untilText, watchReload } from './stage.js';

/** How long the page may wait before it says that something is wrong. Only the pauses between two looks at the page count. */
const MAX_SILENCE_MS = 3_000;

/** Waits until the page says that something is wrong. Returns what it says. */
const untilSaid = (page) => until('the notice is shown', () => notice(page), MAX_SILENCE_MS);

async function assertSaysAndRecovers(t, stage, path, stop, begin) {
  await stage.send('orders', 'order-1', { symbol: 'ACME' });
  await stage.untilCounts('orders', { sent: 1 });
  const page = await stage.tab(path);
  // The stream is open once something changes on the page.
  await stage.send('orders', 'order-2', { symbol: 'ACME' });
  await untilText(page, '#totals', /Sent\s*2/i);
  const assertSame = await watchReload(page);
  await stop();
  const start = Date.now();
  assert.match(await untilSaid(page), /connection|server|store|database/i);
  t.diagnostic(`the page said it after ${Date.now() - start} ms`);
  await begin();
  await until('the notice is gone', async () => (await notice(page)) === '');
  // It is live again, and was never loaded again.
  await stage.untilCounts('orders', { sent: 2 });
  await stage.send('orders', 'order-3', { symbol: 'ACME' });
  await untilText(page, '#totals', /Sent\s*3/i);
  await assertSame();
}

test('a page says that the server is gone, and recovers', on('sqlite', async (stage, t) => {
  await assertSaysAndRecovers(t, stage, '/', () => stage.killServer(), () => stage.startServer());
}));

test('a page says that the database is gone, and recovers', async (t) => {
  const stage = await Stage.start(t, 'stoppable');
  await assertSaysAndRecovers(t, stage, '/', () => stage.stopDatabase(), () => stage.startDatabase());
});

test('a page that is opened while the database is gone says so, and works later', IN_SOAK, async (t) => {
  const stage = await Stage.start(t, 'stoppable');
  await stage.stopDatabase();
  const page = await stage.tab('/');
  await untilText(page, 'main h1', /./);
  assert.match(await page.textContent('main'), /store|database/i);
  await stage.startDatabase();
  await until('the page works', async () => (await page.goto(`${stage.url}/`).catch(() => null))?.status() === 200);
});
