// Bulk operations as a person sees them: many dead letters of one cause, a canary that halts, and a server that is killed meanwhile.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { IN_SOAK, IS_WHOLE, notice, on, until, untilText, watchReload } from './stage.js';

const REFUSED = { status: 400, body: { error: 'the market is closed' } };
const orders = (count) => Array.from({ length: count }, (_, at) => ({ key: `order-${at}`, body: { symbol: 'ACME', qty: String(at) } }));

/** Makes many dead letters of one cause, and opens the page of their failure group. */
async function openGroup(stage, count) {
  stage.receiver.break(() => REFUSED);
  await stage.sendAll('orders', orders(count));
  await stage.untilCounts('orders', { dead: count });
  await stage.untilGrouped('orders', count);
  const page = await stage.tab('/dead-letters');
  await page.click('.group .cause a');
  return page;
}

/** On the page before an operation: types the number that it asks for, and starts it. Returns the number. */
async function start(page) {
  const confirmed = await page.inputValue('input[name=confirmed]');
  await page.fill('input[name=typed]', confirmed);
  await page.click('form.start button');
  await page.waitForURL(/\/operations\/[0-9a-f-]{36}/);
  return Number(confirmed);
}

/** Asserts that every order took effect once. */
function assertOnce(stage, count) {
  const effects = [...stage.receiver.effects.values()];
  assert.equal(effects.length, count);
  assert.ok(effects.every((effect) => effect.count === 1), 'each took effect once');
}

test('a bulk requeue of thousands halts at its canary, and finishes after the repair', on('sqlite', async (stage) => {
  const count = IS_WHOLE ? 5_000 : 300;
  // Its first step is 1 %.
  const canary = count / 100;
  const page = await openGroup(stage, count);
  await page.click('a.button:has-text("Requeue all")');
  assert.match(await page.textContent('#preview'), new RegExp(`${count.toLocaleString('en-US')}.* will be requeued`));
  // A wrong number starts nothing.
  await page.fill('input[name=typed]', '50');
  await page.click('form.start button');
  await page.waitForSelector('main [role=alert]');
  assert.match(await page.textContent('main [role=alert]'), /Nothing was started/);
  assert.equal(await start(page), count);
  // The cause is not repaired: the canary halts, and the rest is as it was.
  await untilText(page, '#state', /halted/);
  assert.match(await untilText(page, '#outcome', /halted it/), new RegExp(`\\d+ of ${canary} `));
  assert.match(await page.textContent('#failed'), /the market is closed/);
  assert.equal(stage.receiver.effects.size, 0);
  await stage.untilCounts('orders', { dead: count, sent: 0 });
  // After the repair, the same page leads to the rest. Those of the canary have failed again since, so they may come after it.
  stage.receiver.repair();
  await page.click('#press a.button');
  const rest = await start(page);
  assert.ok(count - canary <= rest && rest <= count, `${rest}`);
  const assertSame = await watchReload(page);
  await untilText(page, '#state', /done/);
  await assertSame();
  await stage.untilCounts('orders', { dead: count - rest, sent: rest });
  if (rest < count) {
    await page.goto(`${stage.url}/operations/new?action=requeue&queue=orders`);
    assert.equal(await start(page), count - rest);
    await stage.untilCounts('orders', { dead: 0, sent: count });
  }
  assertOnce(stage, count);
}));

test('a server killed during a bulk operation leaves a page that says so, and the rest can be done', IN_SOAK, on('sqlite', async (stage) => {
  const count = 200;
  const page = await openGroup(stage, count);
  await page.click('a.button:has-text("Requeue all")');
  // The receiver is repaired and slow, so the canary waits for its messages.
  stage.receiver.repair();
  stage.receiver.hold();
  await start(page);
  await untilText(page, '#state', /running/);
  const assertSame = await watchReload(page);
  await stage.killServer();
  await until('the page says that the server is gone', async () => (await notice(page)) !== '');
  stage.receiver.release();
  await stage.startServer();
  await until('the page is connected again', async () => (await notice(page)) === '');
  // Nobody continues it; the page says so, and how to go on.
  await untilText(page, '#state', /interrupted/);
  await untilText(page, '#press', /./);
  await assertSame();
  await page.click('#press a.button');
  const rest = await start(page);
  assert.ok(0 < rest && rest <= count, `${rest}`);
  await untilText(page, '#state', /done/);
  await stage.untilCounts('orders', { dead: 0, sent: count });
  assertOnce(stage, count);
}));
