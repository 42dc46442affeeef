// Entries and their person: owner, maximum age, limits, sender.
// The numbered requirements are listed in ../README.md.
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

import { ready, Stage, until } from './stage.js';

const HOUR_MS = 3_600_000;
const ahead = (tab, hours) => tab.evaluate((ms) => localStorage.setItem('aheadMs', ms), hours * HOUR_MS);

// Requirement (6) Entries are held before the server's keys expire, and that is shown.
test('a sent entry is held before the server forgets its key; an unsent one is sent', async (t) => {
  const stage = await Stage.start(t);
  const tab = await stage.tab();
  stage.front.usual = { status: 503, headers: { 'retry-after': '3600' } };
  const once = await stage.press(tab, { qty: 1 }, { destination: 'a' });
  await stage.entry(tab, once.id, 'retrying', ({ state }) => state === 'retrying');
  await stage.context.setOffline(true);
  const never = await stage.press(tab, { qty: 2 }, { destination: 'b' });
  await ahead(tab, 73);
  stage.front.usual = 'pass';
  await stage.context.setOffline(false);
  const held = await stage.entry(tab, once.id, 'held', ({ isHeld }) => isHeld);
  assert.deepEqual([held.state, held.canRetry, held.effect], ['failed', false, 'unknown']);
  assert.match(held.errorMessage, /could repeat the effect.*release or discard/);
  await stage.done(tab, never.id);
  await assert.rejects(tab.evaluate((id) => window.queue.retry(id), once.id), /is held/);
  await stage.assertOnce();
  await tab.evaluate((id) => window.queue.release(id), once.id);
  await stage.done(tab, once.id);
  assert.equal(stage.front.actions[0].key, stage.front.actions.at(-1).key, 'the key never changes');
  await stage.assertOnce(2);
});

test("a person's entries are never sent while another is signed in, and no credential is stored", async (t) => {
  const stage = await Stage.start(t);
  const tab = await stage.tab();
  await tab.evaluate(async () => {
    window.queue.close();
    window.who = 'bob';
    window.authorize = (identity) => (window.who === identity ? { 'X-Session': `secret-of-${identity}` } : null);
    window.ann = await window.open_({ authorize: window.authorize });
    window.bob = await window.open_({ identity: 'bob', authorize: window.authorize });
    window.buy = (queue, qty) => queue.enqueue({ url: '/v1/queues/orders/messages', body: { qty } });
  });
  const { id } = await tab.evaluate(() => window.buy(window.ann, 1));
  const other = await tab.evaluate(() => window.buy(window.bob, 2));
  await until("bob's is done", () => tab.evaluate(async (id) => (await window.bob.get(id)).state === 'done', other.id));
  const waiting = await tab.evaluate((id) => window.ann.get(id), id);
  assert.deepEqual([waiting.state, waiting.attempts], ['saving', 0]);
  await until('it says why it waits', () => tab.evaluate(async (id) => /until ann is signed in/.test((await window.ann.get(id)).errorMessage), id));
  await tab.evaluate(() => (window.who = 'ann'));
  await tab.evaluate(() => window.ann.drain());
  assert.equal((await tab.evaluate((id) => window.ann.get(id), id)).state, 'done');
  assert.deepEqual(stage.front.actions.map(({ body, headers }) => [JSON.parse(body).qty, headers['x-session']]), [[2, 'secret-of-bob'], [1, 'secret-of-ann']]);
  await stage.assertOnce(2);
  await tab.evaluate(() => [window.ann, window.bob].forEach((queue) => queue.close()));
  const profile = join(stage.folder, 'profile');
  assert.notDeepEqual(await filesWith(profile, '/v1/queues/orders/messages'), [], 'what is stored is found by this');
  assert.deepEqual(await filesWith(profile, 'secret-of-'), []);
});

test('signing out deletes the done entries of everybody and keeps the others', async (t) => {
  const stage = await Stage.start(t);
  const tab = await stage.tab();
  await tab.evaluate(async () => {
    window.bob = await window.open_({ identity: 'bob' });
    window.other = await window.open_({ identity: 'bob', name: 'other' });
    window.buy = (queue, qty) => queue.enqueue({ url: '/v1/queues/orders/messages', body: { qty } });
    for (const queue of [window.queue, window.bob, window.other]) await window.buy(queue, 1);
  });
  const states = () => tab.evaluate(() => Promise.all([window.queue, window.bob, window.other].map(async (queue) => (await queue.list()).map(({ state }) => state))));
  await until('all are done', async () => (await states()).flat().every((state) => state === 'done'));
  await stage.context.setOffline(true);
  await tab.evaluate(() => window.buy(window.bob, 2));
  await tab.evaluate(async () => (await import('/ichido.js')).Queue.forgetDone());
  assert.deepEqual(await states(), [[], ['saving'], ['done']]);
});

/** Returns the files of the profile that contain a text. */
async function filesWith(folder, text) {
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.includes('IndexedDB') && /\.(log|ldb)$/.test(name));
  const found = [];
  for (const name of names) if ((await readFile(join(folder, name))).includes(text)) found.push(name);
  return found;
}

// Requirement (7) Strict durability and `storage.persist()`.
test('limits are enforced, and all errors in the settings are reported', async (t) => {
  const stage = await Stage.start(t, { maxEntries: 2, maxEntryBytes: 100 });
  const tab = await stage.tab();
  await stage.context.setOffline(true);
  await assert.rejects(stage.press(tab, 'x'.repeat(101)), /101 bytes, and the limit is 100; raise maxEntryBytes/);
  await stage.press(tab, { qty: 1 });
  const second = await stage.press(tab, { qty: 2 });
  await assert.rejects(stage.press(tab, { qty: 3 }), /the queue is full: it has 2 entries/);
  await tab.evaluate((id) => window.queue.discard(id), second.id);
  await stage.press(tab, { qty: 3 });
  const asked = await tab.evaluate(async () => {
    const real = IDBDatabase.prototype.transaction;
    const asked = [];
    IDBDatabase.prototype.transaction = function (names, mode, options) {
      if (mode === 'readwrite') asked.push(options?.durability);
      return real.call(this, names, mode, options);
    };
    await window.queue.discard((await window.queue.list())[0].id);
    await window.press({ qty: 4 });
    IDBDatabase.prototype.transaction = real;
    return asked;
  });
  assert.deepEqual(new Set(asked), new Set(['strict']), 'a write is over when the disk has it');
  assert.equal(typeof (await tab.evaluate(() => window.queue.isPersistent)), 'boolean', 'the browser was asked to keep it');
  const credential = stage.press(tab, {}, { headers: { Authorization: 'Bearer x' } });
  await assert.rejects(credential, /credential; return it from `authorize`/);
  const wrong = tab.evaluate(() => window.open_({ identity: '', attempts: 0, keepsKeysForMs: 1, profile: 'mine' }));
  await assert.rejects(wrong, /identity is missing[^]*keepsKeysForMs[^]*attempts[^]*profile/);
});

// Requirement (10) It survives a remount.
test('a failing listener stops nothing, and a page that returns sees what ended meanwhile', async (t) => {
  const stage = await Stage.start(t);
  const tab = await stage.tab();
  await tab.evaluate(() => {
    window.addEventListener('error', (event) => event.preventDefault());
    window.queue.subscribe(() => {
      throw new Error('on purpose');
    });
  });
  const { id } = await stage.press(tab, { qty: 1 }, { intent: 'buy' });
  const done = await stage.done(tab, id);
  await tab.reload();
  await ready(tab);
  assert.deepEqual(await tab.evaluate((id) => window.queue.get(id), id), done);
  assert.deepEqual((await tab.evaluate(() => window.queue.list())).map(({ state, intent }) => [state, intent]), [['done', 'buy']]);
  await stage.assertOnce();
  stage.front.faults = stage.front.faults.filter(({ message }) => !message.includes('on purpose'));
});
