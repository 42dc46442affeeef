// The server is killed, or its database stops, while a page is open: the page says so, and recovers when it is back.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { IN_SOAK, notice, on, Stage, until, untilText, watchReload } from './stage.js';

/** What the page promises. A busy machine may take longer, so the test fails only far beyond it, and prints what it measured. */
const PROMISED_MS = 3_000;
const LIMIT_MS = 20_000;

/** Waits until the page says that something is wrong, or no longer says so. Returns how long that took, and what it says. */
async function untilNotice(page, isShown) {
  const start = Date.now();
  const text = await until(`the notice is ${isShown ? 'shown' : 'gone'}`, async () => {
    const text = await notice(page);
    return (text !== '') === isShown && { text };
  });
  return { took: Date.now() - start, ...text };
}

async function assertSaysAndRecovers(t, stage, path, stop, start) {
  await stage.send('orders', 'order-1', { symbol: 'ACME' });
  await stage.untilCounts('orders', { sent: 1 });
  const page = await stage.tab(path);
  // The stream is open once something changes on the page.
  await stage.send('orders', 'order-2', { symbol: 'ACME' });
  await untilText(page, '#totals', /Sent\s*2/i);
  const assertSame = await watchReload(page);
  await stop();
  const said = await untilNotice(page, true);
  t.diagnostic(`the page said it after ${said.took} ms; promised: ${PROMISED_MS} ms`);
  assert.ok(said.took < LIMIT_MS, `${said.took} ms`);
  assert.match(said.text, /connection|server|store|database/i);
  await start();
  const back = await untilNotice(page, false);
  t.diagnostic(`it recovered ${back.took} ms after the restart`);
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
