// One effect, however the network and the server fail.
// The numbered requirements are listed in ../README.md.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Stage } from './stage.js';

const keys = (front) => new Set(front.actions.map(({ key }) => key));
const numbers = (front) => front.actions.map(({ number }) => number);

// Requirement (1) The key is created once, and stored with the bytes before the first send.
test('an action is stored before it is sent, names its hop, and leaves the queue on its response', async (t) => {
  const stage = await Stage.start(t);
  stage.front.ways = ['hold'];
  const tab = await stage.tab();
  const { id, state, attempts } = await stage.press(tab, { qty: 1 });
  assert.deepEqual([state, attempts], ['saving', 0]);
  await stage.front.came(1);
  const entry = await tab.evaluate((id) => window.queue.get(id), id);
  assert.deepEqual([entry.state, entry.attempts, entry.effect], ['saving', 1, 'unknown']);
  await assert.rejects(tab.evaluate((id) => window.queue.discard(id), id), /is being sent/);
  stage.front.release();
  const done = await stage.done(tab, id);
  assert.deepEqual([done.answer.status, done.answer.isReplay, done.attempts], [201, false, 1]);
  await stage.assertOnce();
  const [action] = stage.front.actions;
  assert.deepEqual([action.number, action.body], ['1; manual', '{"qty":1}']);
  assert.match(action.key, /^[0-9a-f-]{36}$/);
  const [message] = await stage.messages();
  assert.equal(JSON.parse(done.answer.body).id, message.id, 'the page has the answer');
  const { hops } = await stage.message(message.href);
  assert.match(hops, /^browser;t=\d+;r="[0-9a-f-]{36}"$/, 'the browser is the first hop that the server keeps');
  const states = await tab.evaluate(() => window.changes.map(({ entry }) => entry.state));
  assert.deepEqual([states[0], states.at(-1)], ['saving', 'done']);
});

// Requirement (1) One key for one intent.
test("a network's login page is not an outcome if the page can detect it", async (t) => {
  const stage = await Stage.start(t, { namesId: true });
  stage.front.ways = [{ status: 200, headers: { 'content-type': 'text/html' }, body: '<h1>Log in to the hotel</h1>' }];
  const tab = await stage.tab();
  const { id } = await stage.press(tab, { qty: 1 });
  const waiting = await stage.entry(tab, id, 'retrying', ({ state }) => state === 'retrying' || state === 'done');
  assert.match(waiting.errorMessage ?? 'login page', /login page/);
  const done = await stage.done(tab, id);
  assert.deepEqual([done.answer.status, done.attempts, keys(stage.front).size], [201, 2, 1]);
  await stage.assertOnce();
});

test('five fast clicks with one intent are one action', async (t) => {
  const stage = await Stage.start(t);
  const [one, other] = [await stage.tab(), await stage.tab()];
  const press = (tab) => tab.evaluate(() => Promise.all([1, 2, 3, 4, 5].map(() => window.press({ qty: 1 }, { intent: 'buy ACME' }))));
  stage.front.ways = ['hold'];
  const pressed = (await Promise.all([press(one), press(other)])).flat();
  assert.equal(new Set(pressed.map(({ id }) => id)).size, 1, 'in two tabs as well');
  const differs = one.evaluate(() => window.press({ qty: 1000 }, { intent: 'buy ACME' }));
  await assert.rejects(differs, /still open with a different request/);
  await stage.front.came(1);
  stage.front.release();
  await stage.done(one, pressed[0].id);
  await stage.assertOnce();
  const later = await stage.press(one, { qty: 1 }, { intent: 'buy ACME' });
  assert.notEqual(later.id, pressed[0].id, 'what is done is over');
  await stage.done(one, later.id);
  await stage.assertOnce(2);
});

test('offline entries use no attempt and are sent in order when the network is back', async (t) => {
  const stage = await Stage.start(t);
  const tab = await stage.tab();
  await stage.context.setOffline(true);
  const ids = [];
  for (const qty of [1, 2, 3]) ids.push((await stage.press(tab, { qty })).id);
  await tab.evaluate(() => window.queue.drain());
  const waiting = await tab.evaluate(() => window.queue.list());
  assert.deepEqual(waiting.map(({ state, attempts }) => [state, attempts]), Array(3).fill(['saving', 0]));
  assert.deepEqual(stage.front.actions, []);
  await stage.context.setOffline(false);
  for (const id of ids) await stage.done(tab, id);
  assert.deepEqual(stage.front.actions.map(({ body }) => JSON.parse(body).qty), [1, 2, 3]);
  assert.deepEqual(numbers(stage.front), Array(3).fill('1; manual'));
  await stage.assertOnce(3);
});

test('a network without responses uses none of the three attempts', async (t) => {
  const stage = await Stage.start(t);
  const tab = await stage.tab();
  stage.front.usual = (number) => (number < 6 ? 'refuse' : 'pass');
  const { id } = await stage.press(tab, { qty: 1 });
  const done = await stage.done(tab, id);
  const retrying = await tab.evaluate(() => window.changes.map(({ entry }) => entry).filter(({ state }) => state === 'retrying'));
  assert.match(retrying[0].errorMessage, /no response/);
  assert.equal(done.attempts, 6);
  assert.equal(keys(stage.front).size, 1);
  await stage.assertOnce();
});

test('what waits for a server that was away is sent at once when the page asks', async (t) => {
  const stage = await Stage.start(t);
  const tab = await stage.tab();
  stage.front.usual = 'refuse';
  const { id } = await stage.press(tab, { qty: 1 });
  await stage.entry(tab, id, 'retrying', ({ state }) => state === 'retrying');
  stage.front.usual = 'pass';
  const entry = await tab.evaluate(async (id) => {
    await window.queue.sendNow();
    return window.queue.get(id);
  }, id);
  assert.equal(entry.state, 'done');
  await stage.assertOnce();
});

// Requirement (2) An entry is deleted only after a definite response.
test('a lost response is requested again with the same key', async (t) => {
  const stage = await Stage.start(t);
  const tab = await stage.tab();
  stage.front.usual = (number) => (number < 3 ? 'drop' : 'pass');
  const done = await stage.done(tab, (await stage.press(tab, { qty: 1 })).id);
  assert.ok(done.answer.isReplay);
  assert.deepEqual(new Set(numbers(stage.front)), new Set(['1; manual', '2; auto', '3; auto']));
  assert.deepEqual([keys(stage.front).size, new Set(stage.front.actions.map(({ body }) => body)).size], [1, 1]);
  await stage.assertOnce();
});

test("a browser's own retry has the same key", async (t) => {
  const stage = await Stage.start(t);
  const tab = await stage.tab();
  stage.front.keepsConnections = true;
  await tab.evaluate(() => fetch('/page.js').then((answer) => answer.text()));
  stage.front.ways = ['drop'];
  const done = await stage.done(tab, (await stage.press(tab, { qty: 1 })).id);
  assert.ok(done.answer.isReplay);
  assert.deepEqual([keys(stage.front).size, stage.front.actions.length], [1, 2]);
  await stage.assertOnce();
});

test('Retry-After is respected, and later entries wait', async (t) => {
  const stage = await Stage.start(t);
  const tab = await stage.tab();
  stage.front.ways = [{ status: 503, headers: { 'retry-after': '30' } }];
  const [before, first] = await tab.evaluate(async () => {
    const { outside } = await import('/page.js');
    return [outside.now(), await window.press({ qty: 1 })];
  });
  const second = await stage.press(tab, { qty: 2 });
  await stage.done(tab, second.id);
  const busy = await tab.evaluate((id) => window.changes.find(({ id: of, entry }) => of === id && entry.state === 'retrying').entry, first.id);
  assert.ok(before + 30_000 <= busy.nextAttemptAt, `${busy.nextAttemptAt - before} ms`);
  assert.deepEqual(stage.front.actions.map(({ body }) => JSON.parse(body).qty), [1, 1, 2]);
  await stage.assertOnce(2);
});

// Requirement (3), (10) Attempts are counted durably; a page that returns sees the same.
test('an entry fails after three responses without an outcome, until the person retries it', async (t) => {
  const stage = await Stage.start(t);
  const tab = await stage.tab();
  stage.front.ways = Array(3).fill({ status: 503, headers: {}, body: '{"detail":"the store is away"}' });
  const { id } = await stage.press(tab, { qty: 1 });
  const failed = await stage.entry(tab, id, 'failed', ({ state }) => state === 'failed');
  assert.deepEqual([failed.canRetry, failed.errorMessage, failed.attempts, failed.effect], [true, 'the store is away', 3, 'unknown']);
  await tab.reload();
  await tab.waitForFunction(() => window.isReady);
  assert.deepEqual(await tab.evaluate((id) => window.queue.get(id), id), failed, 'a page that comes back sees the same');
  assert.equal((await tab.evaluate((id) => window.queue.retry(id), id)).state, 'saving');
  await stage.done(tab, id);
  assert.deepEqual(numbers(stage.front), ['1; manual', '2; auto', '3; auto', '4; manual']);
  assert.equal(keys(stage.front).size, 1);
  await stage.assertOnce();
});

// Requirement (3) 5xx, 408 and 429 keep the entry; any other 4xx fails it at once.
test('a refused entry fails at once, says why, and does not block others', async (t) => {
  const stage = await Stage.start(t);
  const tab = await stage.tab();
  const problem = (status, detail) => ({ status, headers: { 'content-type': 'application/problem+json' }, body: JSON.stringify({ detail }) });
  stage.front.ways = [problem(422, 'qty is missing'), problem(401, 'sign in'), { status: 302, headers: { location: '/elsewhere' } }];
  const ids = [];
  for (const qty of [1, 2, 3, 4]) ids.push((await stage.press(tab, { qty })).id);
  await stage.done(tab, ids[3]);
  const [wrong, stranger, moved] = await tab.evaluate(() => window.queue.list());
  assert.deepEqual([wrong.state, wrong.canRetry, wrong.errorMessage, wrong.effect], ['failed', false, 'qty is missing', 'not_done']);
  assert.deepEqual([stranger.state, stranger.canRetry, stranger.errorMessage], ['failed', true, 'sign in']);
  assert.deepEqual([moved.state, moved.canRetry, moved.effect], ['failed', true, 'unknown'], 'no redirect is followed, and under its key it may be asked again');
  assert.equal(stage.front.actions.length, 4);
  await assert.rejects(tab.evaluate((id) => window.queue.retry(id), wrong.id), /a retry would not help: qty is missing/);
  await tab.evaluate((id) => window.queue.discard(id), wrong.id);
  assert.equal(await tab.evaluate((id) => window.queue.get(id), wrong.id), null);
  await tab.evaluate((id) => window.queue.retry(id), stranger.id);
  await stage.done(tab, stranger.id);
  await stage.assertOnce(2);
});

test('an action in flight is shown as processing and polled until it ends', async (t) => {
  const stage = await Stage.start(t);
  const tab = await stage.tab();
  stage.front.ways = Array(5).fill({ status: 202, headers: { 'idempotency-status': 'processing', 'retry-after': '5' } });
  const { id } = await stage.press(tab, { qty: 1 });
  await stage.done(tab, id);
  const busy = await tab.evaluate(() => window.changes.map(({ entry }) => entry).filter(({ state }) => state === 'processing'));
  assert.deepEqual([busy[0].errorMessage, busy[0].canRetry], [null, false]);
  assert.equal(stage.front.actions.length, 6);
  await stage.assertOnce();
});
