// The rows as a mouse and as a finger use them.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { bookmark, rows, show, Stage, until, untilRows } from './stage.js';

/** A finger's width, and the least that WCAG 2.2 allows (2.5.8). */
const FINGER = 44;
const LEAST = 24;
const PHONE = { hasTouch: true, isMobile: true, viewport: { width: 390, height: 844 } };

const LINKS = [
  bookmark('1', 0, { title: 'A page that is being read, with a title of many words and more', status: 'processing', job_type: 'extraction' }),
  bookmark('2', 4, { title: '山の喫茶店が百年続いた理由と、三代目の店主が毎朝四時に起きる話', summary: '駅から歩いて一時間、山の中腹に一軒の喫茶店がある。三代目の店主は毎朝四時に起き、湧き水を汲みに行く。', summary_by: 'extract', tags: ['喫茶店', '山'] }),
  bookmark('3', 9, { status: 'failed', error_code: 'page_refused', can_retry: true, tags: ['animals', 'jumping'] }),
  ...Array.from({ length: 9 }, (_, place) => bookmark(`more${place}`, 10 + place, { summary: 'A short one.', summary_by: 'model', tags: ['a'] })),
];

const boxesOf = (page, selector) =>
  page.$$eval(selector, (parts) => parts.map((part) => part.getBoundingClientRect()).map(({ left, top, width, height }) => [left, top, width, height].map(Math.round)));

/** Which buttons of the first rows can be seen. */
const seen = (page, row) => page.$$eval(`#list > li:nth-child(${row}) [data-step]`, (buttons) => buttons.filter((button) => button.checkVisibility({ opacityProperty: true })).map((button) => button.getAttribute('data-step')));

test('with a mouse, the buttons of a row appear on hover and on focus, and nothing moves', async (t) => {
  const stage = await Stage.start(t, 'sqlite', { screen: { viewport: { width: 1280, height: 900 } } });
  await show(stage.context, LINKS);
  const page = await stage.signedIn();
  await untilRows(page, 'all', (found) => found.length === LINKS.length);
  assert.ok(await page.evaluate(() => matchMedia('(hover: hover) and (pointer: fine)').matches), 'there is a mouse');
  await page.mouse.move(0, 0);
  assert.deepEqual([await seen(page, 1), await seen(page, 3)], [[], ['retry']], 'what helps is always there');
  const all = '#list > li, #list .name, #list .text, #list .host, #list .tags, #list .doing';
  const before = await boxesOf(page, all);
  await page.hover('#list > li:nth-child(3)');
  assert.deepEqual([await seen(page, 1), await seen(page, 3)], [[], ['retry', 'edit', 'remove']]);
  assert.deepEqual(await boxesOf(page, all), before, 'nothing moves');
  await page.mouse.move(0, 0);
  await page.focus('#list > li:nth-child(1) .link');
  await page.keyboard.press('Tab');
  assert.deepEqual(await seen(page, 1), ['edit', 'remove'], 'a keyboard reaches them');
  assert.deepEqual(await boxesOf(page, all), before, 'nothing moves');
  const [[, top, , height]] = await boxesOf(page, '#list > li:nth-child(8)');
  assert.ok(top + height <= 900, 'eight rows fit');
});

test('no other button comes to the place of Retry', async (t) => {
  for (const screen of [{ viewport: { width: 1280, height: 900 } }, PHONE]) {
    const stage = await Stage.start(t, 'sqlite', { screen });
    const failed = bookmark('1', 1, { status: 'failed', error_code: 'page_refused', can_retry: true });
    const tried = { ...failed, status: 'processing', error_code: null, can_retry: false, job_type: 'extraction' };
    await show(stage.context, [failed]);
    await stage.context.route('**/reprocess', async (route) => {
      await stage.context.unroute(/\/v1\/bookmarks\?/);
      await show(stage.context, [tried]);
      await route.fulfill({ status: 202, json: {} });
    });
    const page = await stage.signedIn();
    for (let language = 0; language < 2; language++) {
      if (screen === PHONE && language === 0) await page.tap('.unfold');
      const others = async () => (await boxesOf(page, '[data-step=edit], [data-step=remove]')).map(([left, , width]) => [left, width]);
      const before = await others();
      await page.click('[data-step=retry]');
      await untilRows(page, 'it is tried', (found) => found[0].steps.join() === 'edit,remove');
      assert.deepEqual(await others(), before, 'the others are where they were, beside it');
      await stage.context.unroute(/\/v1\/bookmarks\?/);
      await show(stage.context, [failed]);
      await page.click('#language');
      await page.evaluate(() => dispatchEvent(new Event('focus')));
      await until('it failed again', () => page.isVisible('[data-step=retry]'));
    }
  }
});

test('Retry is quiet where no attempt can help', async (t) => {
  const stage = await Stage.start(t, 'sqlite', { screen: { viewport: { width: 1280, height: 900 } } });
  const failed = (id, error_code) => bookmark(id, 1, { status: 'failed', error_code, can_retry: true });
  await show(stage.context, [failed('pdf', 'page_not_text'), failed('shy', 'page_refused')]);
  const page = await stage.signedIn();
  await page.mouse.move(0, 0);
  assert.deepEqual([await seen(page, 1), await seen(page, 2)], [[], ['retry']]);
  await page.hover('#list > li:nth-child(1)');
  const styles = await page.$$eval('#list > li:nth-child(1) [data-step]', (buttons) => buttons.map((button) => [getComputedStyle(button).color, getComputedStyle(button).fontWeight].join()));
  assert.deepEqual([styles.length, new Set(styles).size], [3, 1], 'it looks like the others');
});

test('with a finger, a row opens without a hover, and what is touched is large enough', async (t) => {
  const stage = await Stage.start(t, 'sqlite', { screen: PHONE });
  await show(stage.context, LINKS);
  const page = await stage.signedIn();
  await untilRows(page, 'all', (found) => found.length === LINKS.length);
  assert.ok(await page.evaluate(() => matchMedia('(hover: none) and (pointer: coarse)').matches), 'there is a finger');
  const large = async (selector, least = FINGER) => {
    const boxes = await boxesOf(page, selector);
    assert.ok(boxes.length > 0, selector);
    for (const [, , width, height] of boxes.filter(([, , width]) => width > 0)) assert.ok(width >= least && height >= least, `${selector}: ${width} x ${height}`);
  };
  for (const selector of ['#language', '#open-menu', '#url', '#add .main', '#q', '.unfold']) await large(selector);
  await large('.link', LEAST);
  assert.equal(new Set((await boxesOf(page, '#list > li')).map(([, , , height]) => height)).size, 1, 'every row is as high as the others');
  assert.deepEqual(await seen(page, 3), []);
  await page.tap('#list > li:nth-child(3) .unfold');
  assert.deepEqual(await seen(page, 3), ['retry', 'edit', 'remove']);
  await large('#list > li:nth-child(3) :is([data-step], .tag)');
  assert.match((await rows(page))[2].text, /^Saved, no summary\. The site did not let us read/);
  await page.tap('#list > li:nth-child(3) [data-step=edit]');
  await large('.editor :is(input, button)');
  await page.tap('.editor button[type=button]');
  await page.tap('#list > li:nth-child(3) [data-step=remove]');
  await large('#undo');
  assert.equal((await rows(page)).length, LINKS.length - 1);
});

test('a text that does not fit ends with an ellipsis, on every phone and in both languages', async (t) => {
  const stage = await Stage.start(t, 'sqlite', { screen: PHONE });
  await show(stage.context, LINKS);
  const page = await stage.signedIn();
  await untilRows(page, 'all', (found) => found.length === LINKS.length);
  for (const width of [320, 390]) {
    await page.setViewportSize({ width, height: 844 });
    for (let language = 0; language < 2; language++) {
      await page.tap('#language');
      const cut = await page.evaluate(() =>
        [...document.querySelectorAll('body *')]
          .filter((part) => part.checkVisibility() && !part.closest('.aside, dialog') && part.scrollWidth > part.clientWidth + 1 && part.clientWidth > 1)
          .filter((part) => getComputedStyle(part).overflowX !== 'visible' && getComputedStyle(part).textOverflow !== 'ellipsis')
          .map((part) => `${part.className}: ${part.textContent}`));
      assert.deepEqual(cut, [], `${width} wide`);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing sticks out');
    }
  }
});
