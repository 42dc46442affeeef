// Finding a bookmark: search, in the address and offline; long lists; import.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

import { bookmark, ready, rows, save, show, Stage, story, until, untilRows } from './stage.js';

const titles = async (page) => (await rows(page)).map(({ title }) => title);

test('a search is in the address, asks once, and survives a reload', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const page = await stage.signedIn();
  for (const name of ['fox', 'dog']) await save(page, stage.site.put(`/${name}`, story(`The ${name}`, `Only the ${name} is mentioned on this page.`)));
  await untilRows(page, 'both', (found) => found.length === 2 && found.every(({ state }) => state === 'done'));
  assert.equal(await page.textContent('#count'), '2 bookmarks');
  const asked = [];
  page.on('request', (request) => /[?&]q=/.test(request.url()) && asked.push(new URL(request.url()).searchParams.get('q')));
  await page.keyboard.press('Escape');
  await page.keyboard.press('/');
  await page.keyboard.type('DOG');
  await untilRows(page, 'the dog alone', (found) => found.length === 1 && found[0].title === 'The dog');
  assert.deepEqual(new Set(asked), new Set(['DOG']));
  assert.match(page.url(), /\?q=DOG$/);
  await page.reload();
  await ready(page);
  assert.deepEqual([await page.inputValue('#q'), await titles(page)], ['DOG', ['The dog']]);
  await page.fill('#q', 'cat');
  await until('nothing is found', async () => page.isVisible('text=Nothing found'));
  // What is saved during a search is shown, although the search does not find it.
  await save(page, stage.site.put('/owl', story('The owl')));
  await untilRows(page, 'the owl', (found) => found.length === 1 && found[0].title === 'The owl');
  await page.fill('#q', '');
  await untilRows(page, 'all again', (found) => found.length === 3);
  assert.equal(new URL(page.url()).search, '');
});

test('offline, a search filters what the page has, and says so', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  await show(stage.context, [bookmark('queue', 1), bookmark('other', 2, { title: '検索のしくみ', tags: ['search'] }), bookmark('third', 3, { title: 'ＱＵＥＵＥ' })]);
  const page = await stage.signedIn();
  await untilRows(page, 'all', (found) => found.length === 3);
  // In this order: a read in between would find that the server has none of them.
  await stage.context.setOffline(true);
  await stage.context.unroute(/\/v1\/bookmarks\?/);
  for (const [q, found] of [['queue', ['Page queue', 'ＱＵＥＵＥ']], ['検索', ['検索のしくみ']], ['#search', ['検索のしくみ']], ['"page queue"', ['Page queue']], ['nothing', []]]) {
    await page.fill('#q', q);
    await untilRows(page, q, (rows) => JSON.stringify(rows.map(({ title }) => title)) === JSON.stringify(found));
    assert.equal(await page.textContent('#count'), `${found.length} found among the 3 bookmarks on this device`);
  }
  // What waits here is found, and counts.
  await save(page, 'https://www.example.test/kept');
  await page.fill('#q', 'https://example.test/kept');
  await untilRows(page, 'the one that waits', (found) => found.length === 1 && found[0].state === 'saving');
  assert.equal(await page.textContent('#count'), '1 found among the 4 bookmarks on this device');
  await page.fill('#q', '');
  await untilRows(page, 'all', (found) => found.length === 4);
});

test('a press on a tag finds this tag, and Back returns to the place in the list', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const page = await stage.signedIn();
  for (const [name, tag] of [['soup', 'food and drink'], ['bread', 'food'], ['spade', 'garden']]) {
    await page.evaluate(
      async ([url, tag]) => {
        const headers = { 'content-type': 'application/json', 'idempotency-key': crypto.randomUUID() };
        const { id } = await (await fetch('/v1/bookmarks', { method: 'POST', headers, body: JSON.stringify({ url }) })).json();
        await fetch(`/v1/bookmarks/${id}`, { method: 'PATCH', headers, body: JSON.stringify({ tags: [tag] }) });
      },
      [stage.site.put(`/${name}`, story(name)), tag],
    );
  }
  await page.evaluate(() => dispatchEvent(new Event('focus')));
  await untilRows(page, 'all', (found) => found.length === 3 && found.every(({ state }) => state === 'done'));
  await page.setViewportSize({ width: 390, height: 320 });
  for (const [tag, title] of [['food and drink', 'soup'], ['food', 'bread']]) {
    const y = await page.evaluate(() => (scrollTo(0, 40), scrollY));
    await page.$eval(`.tag[data-tag="${tag}"]`, (button) => button.click());
    await untilRows(page, tag, (found) => found.length === 1 && found[0].title === title);
    assert.deepEqual([await page.inputValue('#q'), new URL(page.url()).searchParams.get('q')], [`#"${tag}"`, `#"${tag}"`]);
    await page.goBack();
    await untilRows(page, 'the list', (found) => found.length === 3);
    await until('the place in it', async () => (await page.evaluate(() => scrollY)) === y);
    assert.equal(await page.inputValue('#q'), '');
  }
  await page.fill('#q', '#gard');
  await untilRows(page, 'a tag while it is typed', (found) => found.length === 1 && found[0].title === 'spade');
});

test('a long list is loaded while it is read, and is there after a reload', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  await show(stage.context, Array.from({ length: 180 }, (_, place) => bookmark(String(place), place)));
  const page = await stage.signedIn();
  assert.equal(await page.textContent('#count'), '180 bookmarks');
  const seen = async () => (await rows(page)).length;
  assert.equal(await seen(), 50);
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await until('the next page', async () => (await seen()) === 100);
  // The button does the same for a keyboard.
  await page.focus('#more');
  await page.keyboard.press('Enter');
  await until('more', async () => (await seen()) >= 150);
  const y = await page.evaluate(() => (scrollTo(0, 5_000), scrollY));
  await page.reload();
  await ready(page);
  assert.equal(await page.evaluate(() => scrollY), y);
  assert.ok((await seen()) >= 150);
});

test('importing the same file twice adds each link once', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const file = join(stage.folder, 'bookmarks.html');
  const links = ['fox', 'dog'].map((name) => `<DT><A HREF="${stage.site.put(`/${name}`, story(name))}" ADD_DATE="1700000000">${name}</A>`);
  await writeFile(file, `<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<DL><p>\n${links.join('\n')}\n</DL><p>`);
  const page = await stage.signedIn();
  await page.setInputFiles('#nothing input[type=file]', file);
  await until('both are added', async () => (await page.textContent('#import-result')) === '2 links found: 2 added, 0 already here.');
  await page.setInputFiles('#import', file);
  await until('nothing is added', async () => (await page.textContent('#import-result')) === '2 links found: 0 added, 2 already here.');
  await untilRows(page, 'both', (found) => found.length === 2);
  for (const format of ['html', 'json']) {
    const link = await page.getAttribute(`#menu a[href*="format=${format}"]`, 'href');
    const exported = await page.evaluate(async (link) => (await fetch(link)).text(), link);
    for (const name of ['fox', 'dog']) assert.match(exported, new RegExp(`${stage.site.url}/${name}`));
  }
});
