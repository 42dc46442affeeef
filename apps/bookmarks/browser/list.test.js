// The list as a person sees it: what is on the screen, and what a press does.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

import { bookmark, ready, rows, save, show, Stage, story, until, untilRows } from './stage.js';

const titles = async (page) => (await rows(page)).map(({ title }) => title);

/** Whether all of an element is in the window. */
const isOnScreen = (page, selector) =>
  page.$eval(selector, (element) => {
    const { top, bottom, height } = element.getBoundingClientRect();
    return height > 0 && top >= 0 && bottom <= innerHeight;
  });

test('a page that was saved before is shown on top, with the field and the message', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const url = stage.site.put('/fox', story('The fox'));
  const first = await stage.signedIn();
  await save(first, url);
  await untilRows(first, 'done', (found) => found[0]?.state === 'done');
  const [fox] = await stage.bookmarks();
  for (const [count, isListed] of [[30, true], [5_000, false]]) {
    const all = Array.from({ length: count }, (_, place) => bookmark(`b${place}`, place + 1));
    await stage.context.unroute(/\/v1\/bookmarks\?/);
    await show(stage.context, isListed ? [...all, fox] : all);
    const page = await stage.tab();
    await page.setViewportSize({ width: 390, height: 844 });
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
    await page.keyboard.press('n');
    await page.keyboard.type(url);
    await page.keyboard.press('Enter');
    await until('it says so', async () => /^You saved this before/.test(await page.textContent('#said')));
    assert.deepEqual((await titles(page)).filter((title) => title === 'The fox'), ['The fox'], 'in one row');
    assert.equal(await page.textContent('#list > li:first-child .mark'), 'Saved before');
    for (const part of ['#said', '#url', '#list > li:first-child']) assert.ok(await isOnScreen(page, part), `${part} is on the screen, of ${count}`);
    // It stays there when the list is read again.
    await page.evaluate(() => dispatchEvent(new Event('focus')));
    await until('it is read', () => page.evaluate(() => performance.getEntriesByType('resource').filter(({ name }) => /bookmarks\?/.test(name)).length > 2));
    assert.equal((await titles(page))[0], 'The fox');
    await page.close();
  }
});

test('eight rows fit on a screen of 900 pixels, and no row moves when its state changes', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const states = [
    { status: 'processing', job_type: 'extraction', title: null },
    { status: 'processing', job_type: 'llm_processing', attempt: 2, max_attempts: 3 },
    { status: 'retrying', error_code: 'page_busy', can_retry: true, attempt: 1, max_attempts: 3, retry_at: new Date(Date.now() + 120_000).toISOString() },
    { status: 'failed', error_code: 'page_refused', can_retry: true },
    { summary: 'A summary that is long enough for more than one line. '.repeat(6), summary_by: 'model', tags: ['animals', 'jumping'] },
    { summary: '', summary_by: 'extract' },
  ];
  await show(stage.context, Array.from({ length: 12 }, (_, place) => bookmark(String(place), place, states[place % states.length])));
  const page = await stage.signedIn();
  await untilRows(page, 'all', (found) => found.length === 12);
  for (const width of [390, 1280]) {
    await page.setViewportSize({ width, height: 900 });
    const boxes = await page.$$eval('#list > li', (items) => items.map((item) => item.getBoundingClientRect()).map(({ height, bottom }) => ({ height, bottom })));
    assert.equal(new Set(boxes.map(({ height }) => Math.round(height))).size, 1, 'every row is as high as the others');
    assert.ok(boxes[7].bottom <= 900, `eight rows at ${width}: ${boxes[7].bottom}`);
  }
  const texts = (await rows(page)).map(({ text }) => text);
  assert.deepEqual(texts.slice(0, 4), [
    'Reading the page', 'Summarising the page, attempt 2 of 3', 'Next attempt in 2 minutes, attempt 2 of 3. The site is too busy at the moment.', 'Saved, no summary',
  ]);
});

test('the header fits a narrow phone in both languages, and borders can be seen', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const page = await stage.signedIn();
  await page.setViewportSize({ width: 320, height: 700 });
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    for (let language = 0; language < 2; language++) {
      await page.click('#language');
      const tops = await page.$$eval('.top > :is(h1, button)', (parts) => parts.map((part) => part.getBoundingClientRect()).map(({ top, height }) => Math.round(top + height / 2)));
      assert.equal(new Set(tops).size, 1, `one line: ${tops}`);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing sticks out');
    }
    const [border, paper] = await page.$eval('#url', (field) => [getComputedStyle(field).borderTopColor, getComputedStyle(document.documentElement).backgroundColor]);
    assert.ok(contrast(border, paper) >= 3, `${border} on ${paper}`);
  }
});

/** The contrast of two colours, as WCAG defines it. */
function contrast(...colours) {
  const light = colours.map((colour) => {
    const [red, green, blue] = colour.match(/\d+/g).map((part) => Number(part) / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  });
  return (Math.max(...light) + 0.05) / (Math.min(...light) + 0.05);
}

test('a deletion can be undone, and is done when the page is left', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const page = await stage.signedIn();
  for (const name of ['fox', 'dog', 'cat']) await save(page, stage.site.put(`/${name}`, story(`The ${name}`)));
  await untilRows(page, 'all', (found) => found.length === 3 && found.every(({ state }) => state === 'done'));
  page.on('dialog', () => assert.fail('nothing is asked'));
  await page.keyboard.press('Escape');
  await page.keyboard.press('j');
  await page.keyboard.press('d');
  assert.deepEqual(await titles(page), ['The dog', 'The fox']);
  assert.equal(await page.evaluate(() => document.activeElement.querySelector('.link').textContent), 'The dog', 'the next row has the focus');
  assert.match(await page.textContent('#toast-text'), /^Deleted “The cat”/);
  await page.click('#undo');
  assert.deepEqual(await titles(page), ['The cat', 'The dog', 'The fox']);
  assert.equal((await stage.bookmarks()).length, 3);
  // Two are undone together, and the last of them has the focus.
  const focused = () => page.evaluate(() => document.activeElement.closest('.item')?.querySelector('.link').textContent);
  assert.equal(await focused(), 'The cat');
  await page.keyboard.press('d');
  await page.keyboard.press('d');
  assert.deepEqual([await titles(page), await page.textContent('#toast-text')], [['The fox'], '2 deleted.']);
  await page.keyboard.press('u');
  assert.deepEqual([await titles(page), await focused()], [['The cat', 'The dog', 'The fox'], 'The dog']);
  assert.ok(!(await page.isVisible('#toast')));
  assert.equal((await stage.bookmarks()).length, 3);
  // Leaving the page ends the time to undo.
  await page.click('#list > li:nth-child(1) [data-step=remove]');
  await page.click('#list > li:nth-child(1) [data-step=remove]');
  await page.goto('about:blank');
  await until('both are deleted', async () => (await stage.bookmarks()).length === 1);
});

test('saving a page again keeps it, although it was about to be deleted', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const url = stage.site.put('/fox', story('The fox'));
  const page = await stage.signedIn();
  await save(page, url);
  await untilRows(page, 'done', (found) => found[0]?.state === 'done');
  await page.click('[data-step=remove]');
  await save(page, url);
  await untilRows(page, 'it is back', (found) => found[0]?.title === 'The fox');
  assert.ok(!(await page.isVisible('#toast')));
  await page.reload();
  await ready(page);
  assert.deepEqual(await titles(page), ['The fox']);
});

test('title and tags can be edited', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const page = await stage.signedIn();
  await save(page, stage.site.put('/fox', story('The fox')));
  await untilRows(page, 'done', (found) => found[0]?.state === 'done');
  await page.keyboard.press('Escape');
  await page.keyboard.press('j');
  await page.keyboard.press('e');
  await page.fill('.edit-title', 'A quick fox');
  await page.fill('.edit-tags', '#Animals、 jumping');
  await page.keyboard.press('Enter');
  await untilRows(page, 'the new title', (found) => found[0]?.title === 'A quick fox');
  assert.deepEqual(await page.$$eval('.tag', (tags) => tags.map((tag) => tag.textContent)), ['#animals', '#jumping']);
  assert.deepEqual((await stage.bookmarks()).map(({ title, tags }) => [title, tags]), [['A quick fox', ['animals', 'jumping']]]);
  await page.click('.tag');
  await page.waitForURL(/\?q=%23%22animals%22$/);
  await untilRows(page, 'it is found by its tag', (found) => found.length === 1);
  // Without a title of the person's, it has its own.
  await page.click('[data-step=edit]');
  await page.fill('.edit-title', '');
  await page.click('.editor .main');
  await untilRows(page, 'the title of the page', (found) => found[0]?.title === 'The fox');
});

test('what is refused is said in a sentence of the page, in both languages', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const file = join(stage.folder, 'other.json');
  await writeFile(file, '{"a": 1}');
  const page = await stage.signedIn();
  await save(page, stage.site.put('/fox', story('The fox')));
  await untilRows(page, 'done', (found) => found[0]?.state === 'done');
  const isRed = (selector) => page.$eval(selector, (part) => getComputedStyle(part).color === getComputedStyle(document.querySelector('#hint')).color);
  for (const [tags, long, imported] of [
    [/^A bookmark can have at most 20 tags, each of at most 40 characters\.$/, /^This link is too long\./, /^This file cannot be imported\./],
    [/^タグは20個まで、1個につき40文字までです。$/, /^URLが長すぎます。/, /^このファイルは読み込めません。/],
  ]) {
    for (const refused of ['a'.repeat(41), Array.from({ length: 21 }, (_, place) => `t${place}`).join()]) {
      await page.click('[data-step=edit]');
      await page.fill('.edit-tags', refused);
      await page.click('.editor .main');
      await until('it says why', async () => tags.test(await page.textContent('.editor .hint')));
      assert.ok(await isRed('.editor .hint'));
      await page.click('.editor button[type=button]');
    }
    await save(page, `https://example.com/${'a'.repeat(2_048)}`);
    assert.match(await page.textContent('#hint'), long);
    await page.setInputFiles('#import', file);
    await until('it says why', async () => imported.test(await page.textContent('#import-result')));
    assert.ok(await isRed('#import-result'));
    await page.click('#menu .close');
    await page.click('#language');
  }
  assert.equal((await stage.bookmarks()).length, 1);
});

test('every link of one paste is saved', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const page = await stage.signedIn();
  const urls = ['/fox', '/dog'].map((path) => stage.site.put(path, story(path)));
  await page.$eval(
    '#url',
    (field, text) => {
      const clipboardData = new DataTransfer();
      clipboardData.setData('text', text);
      field.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
    },
    urls.join('\n'),
  );
  assert.equal(await page.inputValue('#url'), urls.join(' '));
  await page.click('#add button');
  await untilRows(page, 'both', (found) => found.length === 2 && found.every(({ state }) => state === 'done'));
  assert.deepEqual((await stage.bookmarks()).map(({ url }) => url).sort(), urls.sort());
});

test('a row is new for a minute, whenever it was drawn', async (t) => {
  const stage = await Stage.start(t, 'sqlite', { serviceWorkers: 'block' });
  await stage.context.clock.install();
  const now = new Date(Math.ceil(Date.now() / 60_000) * 60_000 + 30_000);
  const aged = (seconds) => bookmark(`aged${seconds}`, 0, { created_at: new Date(now.getTime() - seconds * 1_000).toISOString() });
  await show(stage.context, [aged(5), aged(45), aged(75)]);
  const page = await stage.signedIn();
  await page.clock.pauseAt(now);
  const ages = () => page.$$eval('.when', (parts) => parts.map((part) => part.textContent));
  await page.clock.runFor(5_000);
  await until('the ages', async () => (await ages()).join() === 'now,now,1 minute ago');
  await page.clock.runFor(20_000);
  await until('the second is a minute old', async () => (await ages()).join() === 'now,1 minute ago,1 minute ago');
});

test('keys open a page and show the keys', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const page = await stage.signedIn();
  const url = stage.site.put('/fox', story('The fox'));
  await save(page, url);
  await untilRows(page, 'done', (found) => found[0]?.state === 'done');
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  assert.match(await page.textContent('#help'), /oopen.*uundo/s);
  await page.keyboard.press('Escape');
  assert.ok(!(await page.isVisible('#help')));
  await page.keyboard.press('j');
  const opened = stage.context.waitForEvent('page');
  await page.keyboard.press('o');
  await (await opened).waitForURL(url);
});

test('a first visit shows how to save a page', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const page = await stage.signedIn();
  assert.ok(await page.isVisible('text=Nothing saved yet'));
  assert.match(await page.getAttribute('#nothing .bookmarklet', 'href'), /^javascript:void\(open\(/);
  assert.ok(!(await page.isVisible('#not-found')));
  const icons = await page.evaluate(async () => {
    const { icons } = await (await fetch('/manifest.webmanifest')).json();
    const paths = [...icons.map(({ src }) => src), document.querySelector('link[rel=apple-touch-icon]').getAttribute('href'), '/apple-touch-icon.png'];
    return Promise.all(paths.map(async (path) => (await fetch(path)).status));
  });
  assert.deepEqual(new Set(icons), new Set([200]), 'every icon is there');
});
