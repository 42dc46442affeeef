// axe-core checks every page, light and dark, on a phone and a desktop, with a bookmark in each state.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { assertAccessible } from '../../../clients/js/test/browser/shared.js';
import { ready, save, Stage, story, until, untilRows } from './stage.js';

test('axe-core finds no serious violation on any page', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const page = await stage.signedIn();
  await assertAccessible(page, 'the first visit');
  await save(page, stage.site.put('/fox', story('The fox')));
  await untilRows(page, 'done', (found) => found.some(({ state }) => state === 'done'));
  await save(page, `${stage.site.url}/not-there`);
  await untilRows(page, 'failed', (found) => found.some(({ state }) => state === 'failed'));
  await save(page, stage.site.put('/later', (response) => response.writeHead(503).end()));
  await untilRows(page, 'retrying', (found) => found.some(({ state }) => state === 'retrying'));
  await save(page, stage.site.put('/never', () => {}));
  await untilRows(page, 'processing', (found) => found.some(({ state }) => state === 'processing'));
  await save(page, stage.site.url + '/not-there');
  await until('it is on top', () => page.isVisible('[data-pinned]'));
  await page.click('[data-state=done] [data-step=edit]');
  await stage.context.setOffline(true);
  await save(page, 'https://offline.example/');
  await untilRows(page, 'saving', (found) => found.some(({ state }) => state === 'saving'));
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    for (const [width, height] of [[320, 700], [1280, 900]]) {
      await page.setViewportSize({ width, height });
      await assertAccessible(page, `the list, ${colorScheme}, ${width} wide`);
      const scroll = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(scroll <= width, `nothing sticks out at ${width}: ${scroll}`);
    }
    for (const opens of ['#open-menu', '#open-help']) {
      await page.click(opens);
      await assertAccessible(page, `${opens}, ${colorScheme}`);
    }
    for (const dialog of ['#help', '#menu']) await page.click(`${dialog} .close`);
  }
  await stage.context.setOffline(false);
  for (const path of ['/sign-in', '/stats', '/save?url=https://example.com/&title=Example', '/not-there']) {
    const small = await stage.context.newPage();
    await small.goto(stage.url + path);
    await small.waitForSelector('html[data-ready]');
    if (path.startsWith('/save')) await ready(small);
    await assertAccessible(small, path);
  }
});
