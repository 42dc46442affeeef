// One effect, whichever part dies: the page, the tab, the browser, the server.
// The numbered requirements are listed in ../README.md.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ready, Stage, until } from './stage.js';

const keys = (front) => new Set(front.actions.map(({ key }) => key));

test('a page reloaded while sending sends the same action again, with one effect', async (t) => {
  const stage = await Stage.start(t);
  const tab = await stage.tab();
  stage.front.ways = ['hold answer'];
  const { id } = await stage.press(tab, { qty: 1 });
  await until('the server has it', () => stage.front.actions[0]?.status === 201);
  await tab.reload();
  await ready(tab);
  const done = await stage.done(tab, id);
  assert.ok(done.answer.isReplay);
  assert.deepEqual([keys(stage.front).size, stage.front.actions.at(-1).number], [1, '2; auto']);
  await stage.assertOnce();
});

test('a browser killed while sending sends the same action again, with one effect', async (t) => {
  const stage = await Stage.start(t);
  const tab = await stage.tab();
  stage.front.ways = ['hold answer'];
  const { id } = await stage.press(tab, { qty: 1 });
  const behind = await stage.press(tab, { qty: 2 });
  await until('the server has it', () => stage.front.actions[0]?.status === 201);
  await stage.killBrowser();
  await stage.startBrowser();
  const again = await stage.tab();
  assert.ok((await stage.done(again, id)).answer.isReplay);
  await stage.done(again, behind.id);
  assert.deepEqual(stage.front.actions.map(({ body }) => JSON.parse(body).qty), [1, 1, 2], 'in order');
  assert.equal(stage.front.actions[0].key, stage.front.actions[1].key);
  await stage.assertOnce(2);
});

// Requirement (7) Durable when `enqueue` resolves.
test('a saved action is on disk, even if the browser is killed right after', async (t) => {
  const stage = await Stage.start(t);
  const tab = await stage.tab();
  await stage.context.setOffline(true);
  const saved = await tab.evaluate(() => Promise.all([1, 2, 3, 4, 5].map((qty) => window.press({ qty }))));
  await stage.killBrowser();
  await stage.startBrowser();
  const again = await stage.tab();
  for (const { id } of saved) await stage.done(again, id);
  assert.deepEqual(stage.front.actions.map(({ body }) => JSON.parse(body).qty), [1, 2, 3, 4, 5]);
  await stage.assertOnce(5);
});

test('a server killed before its response gets the action again after its restart', async (t) => {
  const stage = await Stage.start(t);
  const tab = await stage.tab();
  stage.front.ways = ['hold answer'];
  const { id } = await stage.press(tab, { qty: 1 });
  await until('the server has it', () => stage.front.actions[0]?.status === 201);
  await stage.effects();
  await stage.killServer();
  stage.front.ways = ['drop'];
  stage.front.server.closeAllConnections();
  await until('a try found nobody', () => tab.evaluate(() => window.changes.some(({ entry }) => entry.state === 'retrying')));
  await stage.startServer();
  const done = await stage.done(tab, id);
  assert.ok(done.answer.isReplay);
  assert.equal(keys(stage.front).size, 1);
  await stage.assertOnce();
});

// Requirement (8) Requests that outlive a page stay under 64 KiB.
test("a request in flight outlives its page, within the browser's limit", async (t) => {
  const stage = await Stage.start(t);
  const tab = await stage.tab();
  stage.front.ways = ['hold', 'hold'];
  // Two destinations, so both are in flight at once; together they exceed what may outlive a page.
  const large = 'x'.repeat(40 * 1024);
  const [kept, cut] = await tab.evaluate(async (note) => {
    const draft = (destination) => ({ destination });
    return [await window.press({ qty: 1, note }, draft('a')), await window.press({ qty: 2, note }, draft('b'))];
  }, large);
  await stage.front.came(2);
  const [first, second] = [1, 2].map((wanted) => stage.front.actions.find(({ body }) => JSON.parse(body).qty === wanted));
  await tab.reload();
  await until('the other one is cut', () => second.isCut);
  assert.ok(!first.isCut);
  stage.front.release();
  await until('the server has it', () => first.status === 201);
  await ready(tab);
  for (const { id } of [kept, cut]) await stage.done(tab, id);
  await stage.assertOnce(2);
});

// Requirement (4) In order for each destination, one sender across tabs.
test('tabs share one queue with one sender, in order, and all get every change', async (t) => {
  const stage = await Stage.start(t);
  const tabs = [await stage.tab(), await stage.tab()];
  const press = (tab, from) => tab.evaluate(async (from) => {
    for (let n = 0; n < 5; n++) await window.press({ qty: from + n });
  }, from);
  await Promise.all([press(tabs[0], 100), press(tabs[1], 200)]);
  const entries = await tabs[0].evaluate(() => window.queue.list());
  for (const { id } of entries) await stage.done(tabs[1], id);
  const sent = stage.front.actions.map(({ body }) => JSON.parse(body).qty);
  assert.equal(sent.length, 10, 'no action was sent twice');
  for (const from of [100, 200]) assert.deepEqual(sent.filter((qty) => from <= qty && qty < from + 100), [0, 1, 2, 3, 4].map((n) => from + n));
  for (const tab of tabs) {
    await until('it heard that all are done', () => tab.evaluate(() => new Set(window.changes.filter(({ entry }) => entry?.state === 'done').map(({ id }) => id)).size === 10));
  }
  await stage.assertOnce(10);
});

test('a tab that navigates away while sending is replaced by another tab', async (t) => {
  const stage = await Stage.start(t);
  const one = await stage.tab();
  stage.front.ways = ['hold answer'];
  const { id } = await stage.press(one, { qty: 1 });
  await until('the server has it', () => stage.front.actions[0]?.status === 201);
  const other = await stage.tab();
  const behind = await stage.press(other, { qty: 2 });
  assert.equal(stage.front.actions.length, 1, 'the other tab waits for its turn');
  await one.goto(`${stage.front.url}/elsewhere.html`);
  assert.ok((await stage.done(other, id)).answer.isReplay);
  await stage.done(other, behind.id);
  assert.equal(keys(stage.front).size, 2);
  await stage.assertOnce(2);
});

test('a lock that is never released blocks others for one lease at most', async (t) => {
  const stage = await Stage.start(t, { attemptTimeoutMs: 10_000 });
  const [one, other] = [await stage.tab(), await stage.tab()];
  await one.evaluate((name) => void navigator.locks.request(name, () => new Promise(() => {})), `ichido ["ichido","ann"] ${stage.front.url}`);
  const { id } = await stage.press(other, { qty: 1 });
  await stage.done(other, id);
  const { held } = await other.evaluate(() => navigator.locks.query());
  assert.equal(held.length, 1, 'it is still held');
  await stage.assertOnce();
});

// Requirement (2) A lease marks an entry in flight.
test('without Web Locks, leases keep tabs apart and replace a dead tab', async (t) => {
  const stage = await Stage.start(t, { locks: null });
  const one = await stage.tab();
  stage.front.ways = ['hold answer'];
  const { id } = await stage.press(one, { qty: 1 });
  await until('the server has it', () => stage.front.actions[0]?.status === 201);
  const other = await stage.tab();
  assert.equal(await other.evaluate(() => window.queue.drain()), 1);
  await one.close();
  assert.equal(await other.evaluate(() => window.queue.drain()), 1, 'nobody knows yet that the tab is gone');
  assert.equal(stage.front.actions.length, 1);
  await other.evaluate(() => localStorage.setItem('aheadMs', 20_000 * 25 + 5_000));
  await other.evaluate(() => window.queue.drain());
  assert.ok((await stage.done(other, id)).answer.isReplay);
  assert.equal(keys(stage.front).size, 1);
  await stage.assertOnce();
});

// Requirement (5) Load, online, visibility; every retry tests the timer, and guide.test.js the sync event.
test('load, network, visibility and back navigation each trigger sending', async (t) => {
  const stage = await Stage.start(t, { timers: null });
  const tab = await stage.tab();
  const ways = {
    online: () => tab.evaluate(() => window.dispatchEvent(new Event('online'))),
    visibility: () => tab.evaluate(() => document.dispatchEvent(new Event('visibilitychange'))),
    'way back': () => tab.evaluate(() => window.dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))),
    load: () => tab.reload(),
  };
  let count = 0;
  for (const [name, wake] of Object.entries(ways)) {
    stage.front.ways = ['refuse'];
    const { id } = await stage.press(tab, { qty: 1 });
    await until('a try found nobody', () => tab.evaluate(async (id) => (await window.queue.get(id)).state === 'retrying', id));
    assert.equal(await tab.evaluate(() => window.queue.drain()), 1, 'it waits for its time');
    await wake();
    await ready(tab);
    await stage.done(tab, id);
    await stage.assertOnce(++count);
    assert.equal(keys(stage.front).size, count, name);
  }
});

test('a queue closed while sending continues when it is opened again', async (t) => {
  const stage = await Stage.start(t);
  const tab = await stage.tab();
  stage.front.ways = ['hold answer'];
  const { id } = await stage.press(tab, { qty: 1 });
  await until('the server has it', () => stage.front.actions[0]?.status === 201);
  await tab.evaluate(async () => {
    window.queue.close();
    window.queue = await window.open_();
  });
  assert.ok((await stage.done(tab, id)).answer.isReplay);
  assert.equal(keys(stage.front).size, 1);
  await stage.assertOnce();
});
