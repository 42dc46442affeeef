// The server goes away and comes back. The test moves the page's clock, so nothing here depends on the machine's speed.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { rows, save, Stage, story, until, untilRows } from './stage.js';

/** What the page may take to notice that the server is back, and to send what waits. */
const SOON_MS = 3_000;

/** A page whose timers only run when the test says so. */
async function stopped(stage) {
  await stage.context.clock.install();
  const page = await stage.signedIn();
  await page.clock.pauseAt(new Date(Date.now() + 60_000));
  return page;
}

test('a failed save raises the bar, and is sent as soon as the server is back', async (t) => {
  const stage = await Stage.start(t, 'sqlite', { serviceWorkers: 'block' });
  const page = await stopped(stage);
  await stage.killProduct();
  await save(page, stage.site.put('/fox', story('The fox')));
  // Without any time passing on the page.
  await until('the bar is there', async () => /^Cannot reach the server\. 1 page is waiting/.test(await page.textContent('#bar-text')));
  const [row] = await rows(page);
  assert.deepEqual([row.state, row.text], ['saving', 'Stored on this device. It will be sent when the server can be reached.']);
  await stage.startProduct();
  await page.clock.runFor(SOON_MS);
  await until('it is saved', async () => (await stage.bookmarks()).length === 1);
  await until('the bar is gone', async () => !(await page.isVisible('#bar')));
});

test('a deletion that failed is said until the server is back', async (t) => {
  const stage = await Stage.start(t, 'sqlite', { serviceWorkers: 'block' });
  const page = await stopped(stage);
  await save(page, stage.site.put('/fox', story('The fox')));
  await until('it is saved', async () => (await stage.bookmarks())[0]?.status === 'done');
  await page.clock.runFor(SOON_MS);
  await untilRows(page, 'done', (found) => found[0]?.state === 'done');
  await stage.killProduct();
  await page.click('[data-step=remove]');
  await page.clock.runFor(6_000);
  await until('it says so', async () => (await page.textContent('#hint')) === 'Could not delete “The fox”. It is back in the list.');
  await untilRows(page, 'it is back', (found) => found.length === 1);
  await stage.startProduct();
  await page.clock.runFor(SOON_MS);
  await until('the message is gone', async () => (await page.textContent('#hint')) === '');
});

test('an export says that the server is away', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const page = await stage.signedIn();
  await page.click('#open-menu');
  const [file] = await Promise.all([page.waitForEvent('download'), page.click('#menu a[href*="format=json"]')]);
  assert.match(file.suggestedFilename(), /\.json$/);
  await stage.killProduct();
  await page.click('#menu a[href*="format=html"]');
  await until('it says so', async () => /^Cannot reach the server, so/.test(await page.textContent('#import-result')));
  await stage.startProduct();
  await Promise.all([page.waitForEvent('download'), page.click('#menu a[href*="format=html"]')]);
  assert.equal(await page.textContent('#import-result'), '');
});

test('a failed read raises the bar, and what waits can be sent by hand', async (t) => {
  const stage = await Stage.start(t, 'sqlite', { serviceWorkers: 'block' });
  const page = await stopped(stage);
  await stage.killProduct();
  await page.evaluate(() => dispatchEvent(new Event('focus')));
  await until('the bar is there', async () => (await page.textContent('#bar-text')) === 'Cannot reach the server.');
  assert.ok(!(await page.isVisible('#send-now')), 'there is nothing to send');
  await save(page, stage.site.put('/fox', story('The fox')));
  await untilRows(page, 'it waits', (found) => found[0]?.state === 'saving');
  await stage.startProduct();
  await page.click('#send-now');
  await until('it is saved', async () => (await stage.bookmarks()).length === 1);
});
