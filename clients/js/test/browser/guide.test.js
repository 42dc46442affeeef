// Runs the code of docs/guides/browser-client.md unchanged.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { ready, Stage, until } from './stage.js';

const GUIDE = readFileSync(new URL('../../../../docs/guides/browser-client.md', import.meta.url), 'utf8');
const BLOCKS = new Map(Array.from(GUIDE.matchAll(/<!-- run: (\w+) -->\n```\w+\n([^]*?)```/g), ([, name, code]) => [name, code]));
const PACKAGE = fileURLToPath(new URL('../../', import.meta.url));

test('a test runs every code block of the guide', () => {
  assert.deepEqual(Array.from(BLOCKS.keys()), ['page', 'authorize', 'worker', 'cors', 'node']);
  const blocks = GUIDE.match(/^```\w+$/gm);
  assert.equal(blocks.length, BLOCKS.size);
});

test("the guide's page shows an order, sends two clicks once, and offers a retry", async (t) => {
  const stage = await Stage.start(t);
  const html = GUIDE.match(/with `(<button[^`]*)` in the page/)[1];
  stage.front.files.set('/guide.html', `<!doctype html><meta charset="utf-8">${html}<script type="module" src="/guide.js"></script>`);
  stage.front.files.set('/guide.js', `${BLOCKS.get('page')}\nwindow.isReady = true;`);
  stage.front.ways = ['hold'];
  const page = await stage.context.newPage();
  await page.goto(`${stage.front.url}/guide.html`);
  await ready(page);
  await page.click('#buy');
  await page.click('#buy');
  await stage.front.came(1);
  stage.front.release();
  await page.waitForSelector('#orders li:text("done")');
  assert.equal(await page.locator('#orders li').count(), 1);
  await stage.assertOnce();
  stage.front.ways = [{ status: 401, headers: {}, body: '{"detail":"sign in first"}' }];
  await page.click('#buy');
  await page.waitForSelector('#orders li:text("failed sign in first")');
  await page.reload();
  await page.click('#orders button:text("Retry")');
  await until('both are done', async () => (await page.locator('#orders li:text("done")').count()) === 2);
  await stage.assertOnce(2);
});

test("the guide's authorize sends only for the person who is signed in", async (t) => {
  const stage = await Stage.start(t);
  stage.front.files.set('/session', JSON.stringify({ name: 'bob', token: 'b' }));
  const tab = await stage.tab();
  await tab.evaluate((code) => {
    window.queue.close();
    const run = new Function('Queue', `return (async () => { ${code}; return queue; })()`);
    return import('/ichido.js').then(({ Queue }) => run(Queue)).then((queue) => void (window.queue = queue));
  }, BLOCKS.get('authorize'));
  const { id } = await stage.press(tab, { qty: 1 });
  await stage.entry(tab, id, 'waiting for ann', ({ errorMessage }) => /until ann is signed in/.test(errorMessage));
  assert.deepEqual(stage.front.actions, []);
  stage.front.files.set('/session', JSON.stringify({ name: 'ann', token: 'a' }));
  await tab.evaluate(() => window.queue.drain());
  const [{ headers }] = await stage.front.came(1);
  assert.equal(headers.authorization, 'Bearer a');
});

test("the guide's CORS headers are sufficient", async (t) => {
  const stage = await Stage.start(t);
  const fields = BLOCKS.get('cors').trim().split('\n').map((line) => line.split(': '));
  stage.front.cors = { ...Object.fromEntries(fields), 'Access-Control-Allow-Origin': stage.front.url };
  const tab = await stage.tab();
  // The same front under another name is another origin.
  const url = `http://127.0.0.1:${stage.front.port}/v1/queues/orders/messages`;
  stage.front.ways = [
    { status: 503, headers: { 'retry-after': '7' } },
    { status: 202, headers: { 'idempotency-status': 'processing', 'retry-after': '2' } },
  ];
  const before = await tab.evaluate(async () => (await import('/page.js')).outside.now());
  const { id } = await stage.press(tab, { qty: 1 }, { url });
  await stage.done(tab, id);
  const seen = await tab.evaluate((id) => window.changes.filter((change) => change.id === id).map(({ entry }) => entry), id);
  const busy = seen.find(({ state, nextAttemptAt }) => state === 'retrying' && nextAttemptAt !== null);
  assert.ok(before + 7000 <= busy.nextAttemptAt, 'Retry-After is seen');
  assert.ok(seen.some(({ state }) => state === 'processing'), 'in flight is seen');
  assert.equal(stage.front.actions.length, 3);
  await stage.assertOnce();
  // If the server does not expose the header, the body says it.
  delete stage.front.cors['Access-Control-Expose-Headers'];
  stage.front.ways = [{ status: 202, headers: { 'idempotency-status': 'processing' }, body: '{"code":"key_in_flight"}' }];
  const hidden = await stage.press(tab, { qty: 2 }, { url });
  await stage.done(tab, hidden.id);
  assert.equal(stage.front.actions.length, 5, 'it was no outcome');
  await stage.assertOnce(2);
});

test("the guide's service worker sends waiting entries on Background Sync, without the page", async (t) => {
  const stage = await Stage.start(t, {}, true);
  stage.front.files.set('/worker.js', BLOCKS.get('worker'));
  const tab = await stage.tab();
  const cdp = await stage.context.newCDPSession(tab);
  const registered = new Promise((resolve) => cdp.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => registrations[0] && resolve(registrations[0].registrationId)));
  await cdp.send('ServiceWorker.enable');
  await tab.evaluate(async () => {
    await navigator.serviceWorker.register('/worker.js', { type: 'module' });
    await navigator.serviceWorker.ready;
  });
  // Only the page has no network, and it registers the sync; it must not be the sender.
  await stage.context.setOffline(true);
  await stage.press(tab, { qty: 1 });
  const tags = () => tab.evaluate(async () => (await navigator.serviceWorker.getRegistration()).sync.getTags());
  assert.deepEqual(await until('the sync is asked for', async () => ((await tags()).length ? tags() : null)), ['ichido']);
  await tab.evaluate(() => window.queue.close());
  await stage.context.setOffline(false);
  await cdp.send('ServiceWorker.dispatchSyncEvent', { origin: stage.front.url, registrationId: await registered, tag: 'ichido', lastChance: false });
  await stage.front.came(1);
  await tab.reload();
  await ready(tab);
  await stage.done(tab, 1);
  assert.equal(stage.front.actions[0].number, '1; manual');
  await stage.assertOnce();
});

test("the guide's Node program sends an order once even if its response is lost", async (t) => {
  const stage = await Stage.start(t);
  stage.front.usual = (number) => (number < 2 ? 'drop' : 'pass');
  const program = ['--input-type=module', '--eval', BLOCKS.get('node')];
  const { stdout } = await promisify(execFile)(process.execPath, program, { cwd: PACKAGE, env: { ...process.env, ICHIDO_URL: `http://127.0.0.1:${stage.front.port}` } });
  assert.equal(stdout, 'done: 201 after 2\n');
  assert.equal(new Set(stage.front.actions.map(({ key }) => key)).size, 1);
  await stage.assertOnce();
});
