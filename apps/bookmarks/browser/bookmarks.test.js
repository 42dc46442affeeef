// Bookmarks as a person uses it: in a real browser, on both databases.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ready, rows, save, Stage, story, until, untilRows } from './stage.js';

/** Runs a test on both databases. */
const onBoth = (wanted, work) => async (t) => {
  for (const kind of ['sqlite', 'postgres']) await t.test(kind, async (t) => work(await Stage.start(t, kind, wanted)));
};

test('five fast presses make one bookmark', onBoth({}, async (stage) => {
  const url = stage.site.put('/fox', story('The fox'));
  const page = await stage.signedIn();
  await page.fill('#url', url);
  await page.$eval('#add button', (button) => {
    for (let press = 0; press < 5; press++) button.click();
  });
  await untilRows(page, 'one row that is done', (found) => found.length === 1 && found[0].state === 'done' && found[0].title === 'The fox');
  const saved = await stage.bookmarks();
  assert.deepEqual(saved.map(({ created_from, source_hint }) => [created_from, source_hint]), [['web', 'article']]);
  // Once more after the first is saved: another key, and the same bookmark.
  await save(page, `${url}#again`);
  await until('it says that the page is already saved', async () => /saved this before/.test(await page.textContent('#said')));
  await untilRows(page, 'the first, and no other', (found) => found.length === 1 && found[0].title === 'The fox');
  assert.equal((await stage.bookmarks()).length, 1);
}));

test('an offline save is saved once after the network is back and the server was restarted', onBoth({}, async (stage) => {
  const urls = ['/a', '/b', '/c'].map((path) => stage.site.put(path, story(path)));
  const page = await stage.signedIn();
  await stage.context.setOffline(true);
  for (const url of urls) {
    await save(page, url);
    await until('it is stored', async () => (await page.inputValue('#url')) === '');
  }
  await until('the bar shows how many are waiting', async () => /3 pages are waiting/.test(await page.textContent('#bar')));
  assert.deepEqual(await stage.bookmarks(), []);
  await stage.killProduct();
  await stage.startProduct();
  await stage.context.setOffline(false);
  await untilRows(page, 'three rows that are done', (found) => found.length === 3 && found.every(({ state }) => state === 'done'));
  const saved = await stage.bookmarks();
  assert.deepEqual(saved.map(({ url }) => url).sort(), urls.sort());
  await until('the bar is gone', async () => !(await page.isVisible('#bar')));
}));

test('a failed summary is a saved link, says why on demand, and a retry fixes it', onBoth({ llm: true }, async (stage) => {
  await stage.script({ rules: [{ do: { fail: 'denied' } }] });
  const page = await stage.signedIn();
  await save(page, stage.site.put('/fox', story('The fox')));
  const [failed] = await untilRows(page, 'failed', (found) => found[0]?.state === 'failed');
  assert.deepEqual([failed.title, failed.text, failed.steps], ['The fox', 'Saved, no summary', ['retry', 'edit', 'remove']]);
  const colours = () => page.$eval('#list > li', (row) => ['.text', '.host'].map((part) => getComputedStyle(row.querySelector(part)).color));
  const [text, host] = await colours();
  assert.equal(text, host, 'it is as quiet as the rest');
  // The words are a button, and look like one.
  const why = page.getByRole('button', { name: 'Saved, no summary: show the reason' });
  assert.deepEqual([await why.getAttribute('aria-expanded'), await why.evaluate((button) => getComputedStyle(button).textDecorationLine)], ['false', 'underline']);
  await why.focus();
  await page.keyboard.press('Enter');
  assert.deepEqual([await why.getAttribute('aria-expanded'), await why.evaluate((button) => button === document.activeElement)], ['true', true]);
  await untilRows(page, 'the reason', (found) => /^Saved, no summary\. The summariser does not let us in/.test(found[0]?.text));
  await stage.script({ rules: [{ do: { say: 'A fox jumped.' } }] });
  await page.click('[data-step=retry]');
  const [done] = await untilRows(page, 'done', (found) => found[0]?.state === 'done');
  assert.equal(done.text, 'A fox jumped.');
}));

test('what the model refuses, and a quota that is used up, are said in both languages', onBoth({ llm: true }, async (stage) => {
  const page = await stage.signedIn();
  const reasons = [
    ['invalid', /^Saved, no summary\. The summariser could not accept this page\.$/, /要約サービスがこのページを受け付けませんでした。$/],
    ['spend_limit', /^Saved, no summary\. The quota of the summariser is used up\.$/, /要約サービスの利用枠を使い切りました。$/],
  ];
  for (const [fault, english, japanese] of reasons) {
    await stage.script({ rules: [{ do: { fail: fault } }] });
    await save(page, stage.site.put(`/${fault}`, story(fault)));
    await untilRows(page, 'failed', (found) => found[0]?.title === fault && found[0].state === 'failed');
    await page.click('#list > li:first-child .unfold');
    await untilRows(page, fault, (found) => english.test(found[0].text));
    await page.click('#language');
    await untilRows(page, `${fault}, in Japanese`, (found) => japanese.test(found[0].text));
    await page.click('#language');
  }
}));

test('two tabs show the same rows and send once', onBoth({}, async (stage) => {
  const [one, url] = [await stage.signedIn(), stage.site.put('/fox', story('The fox'))];
  const other = await stage.tab();
  await stage.context.setOffline(true);
  await Promise.all([save(one, url), save(other, url)]);
  for (const page of [one, other]) await untilRows(page, 'one row that waits', (found) => found.length === 1 && found[0].state === 'saving');
  await stage.context.setOffline(false);
  for (const page of [one, other]) await untilRows(page, 'one row that is done', (found) => found.length === 1 && found[0].state === 'done');
  assert.equal((await stage.bookmarks()).length, 1);
}));

test('each person sees only their own bookmarks', onBoth({}, async (stage) => {
  const url = stage.site.put('/fox', story('The fox'));
  const mine = await stage.signedIn();
  await save(mine, url);
  await untilRows(mine, 'mine', (found) => found[0]?.state === 'done');
  const token = await stage.addPerson('ann');
  // Another person in the same browser: the first person's waiting save is not sent as the second.
  await stage.context.setOffline(true);
  await save(mine, stage.site.put('/secret', story('Secret')));
  await untilRows(mine, 'it waits', (found) => found.some(({ state }) => state === 'saving'));
  await stage.context.setOffline(false);
  const theirs = await stage.signedIn(token);
  assert.deepEqual(await rows(theirs), []);
  await save(theirs, url);
  await untilRows(theirs, 'theirs', (found) => found.length === 1 && found[0].state === 'done');
  assert.deepEqual((await stage.bookmarks(token)).map(({ url }) => url), [url]);
  const [{ id }] = await stage.bookmarks();
  const asked = await theirs.evaluate(async (id) => (await fetch(`/v1/bookmarks/${id}`)).status, id);
  assert.equal(asked, 404);
}));

test('a script in a title is shown as text', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const title = '<script>window.isBroken = true</script><img src=x onerror="window.isBroken = true">';
  const url = stage.site.put('/evil', story(title.replaceAll('<', '&lt;'), `${title.replaceAll('<', '&lt;')} A fox jumped over a dog.`));
  const page = await stage.signedIn();
  await save(page, url);
  const [row] = await untilRows(page, 'done', (found) => found[0]?.state === 'done');
  assert.equal(row.title, title);
  assert.equal(await page.evaluate(() => window.isBroken), undefined);
  assert.equal(await page.$('#list script, #list img'), null);
});

test('a browser killed while saving makes one bookmark', async (t) => {
  const stage = await Stage.start(t, 'sqlite', { ownBrowser: true });
  const url = stage.site.put('/fox', story('The fox'));
  const page = await stage.signedIn();
  await stage.killProduct();
  await save(page, url);
  await untilRows(page, 'it waits', (found) => found.length === 1 && found[0].state !== 'done');
  await stage.killBrowser();
  await stage.startProduct();
  await stage.startBrowser();
  // A killed browser may have lost the session, and nothing else.
  const later = await stage.signedIn();
  await untilRows(later, 'one row that is done', (found) => found.length === 1 && found[0].state === 'done');
  assert.equal((await stage.bookmarks()).length, 1);
});

test('the page opens offline with its bookmarks and waiting saves', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const page = await stage.signedIn();
  await save(page, stage.site.put('/fox', story('The fox')));
  await untilRows(page, 'done', (found) => found[0]?.state === 'done');
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
  await stage.killProduct();
  await page.reload();
  await ready(page);
  assert.deepEqual((await rows(page)).map(({ title }) => title), ['The fox']);
  await save(page, stage.site.put('/dog', story('The dog')));
  await untilRows(page, 'it waits', (found) => found.length === 2 && found[0].state !== 'done');
  await stage.startProduct();
  await page.evaluate(() => dispatchEvent(new Event('online')));
  await untilRows(page, 'both are done', (found) => found.length === 2 && found.every(({ state }) => state === 'done'));
});

test('the page can be read in Japanese', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const page = await stage.signedIn();
  await page.click('#language');
  assert.equal(await page.getAttribute('html', 'lang'), 'ja');
  assert.equal(await page.textContent('#add button'), '保存');
  await save(page, `${stage.site.url}/not-there`);
  const [row] = await untilRows(page, 'failed', (found) => found[0]?.state === 'failed');
  assert.equal(row.text, '保存済み。要約に失敗しました');
  await page.click('.unfold');
  await untilRows(page, 'the reason', (found) => found[0]?.text === '保存済み。要約に失敗しました。このページは存在しません。');
  await page.reload();
  await ready(page);
  assert.equal(await page.title(), 'しおり', 'the language is remembered');
});

test('signing in leads to the search that was opened', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const page = await stage.context.newPage();
  await page.goto(`${stage.url}/?q=fox`);
  await page.waitForURL(/sign-in/);
  await page.fill('#token', stage.token);
  await page.click('#sign-in button');
  await page.waitForURL(`${stage.url}/?q=fox`);
  await ready(page);
  assert.equal(await page.inputValue('#q'), 'fox');
});

test('a sign-in link works in a tab that is already open', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const page = await stage.context.newPage();
  await page.goto(`${stage.url}/`);
  await page.waitForURL(/sign-in/);
  await page.waitForSelector('html[data-ready]');
  await page.evaluate((token) => (location.hash = `token=${token}`), stage.token);
  await until('the token is in the field', async () => (await page.inputValue('#token')) === stage.token);
  assert.equal(page.url(), `${stage.url}/sign-in`, 'and not in the address bar');
  await page.click('#sign-in button');
  await page.waitForURL(`${stage.url}/`);
  await ready(page);
});

test('a waiting save can be discarded, and a waiting retry can run at once', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const page = await stage.signedIn();
  let isUp = false;
  await save(page, stage.site.put('/fox', (response) => response.writeHead(isUp ? 200 : 503, { 'content-type': 'text/html' }).end(story('The fox'))));
  const [waits] = await untilRows(page, 'it is to be retried', (found) => found[0]?.state === 'retrying');
  assert.deepEqual(waits.steps, ['retry', 'edit', 'remove']);
  assert.match(waits.text, /^Next attempt in .*, attempt 2 of 3\. The site has a problem at the moment\.$/);
  isUp = true;
  await page.click('[data-step=retry]');
  await untilRows(page, 'done', (found) => found[0]?.state === 'done' && found[0].title === 'The fox');
  await stage.context.setOffline(true);
  await save(page, 'https://offline.example/');
  await untilRows(page, 'it waits', (found) => found.length === 2 && found[0].state === 'saving' && found[0].steps.includes('discard'));
  await page.click('[data-step=discard]');
  await untilRows(page, 'it is gone', (found) => found.length === 1);
  await stage.context.setOffline(false);
  assert.equal((await stage.bookmarks()).length, 1);
});

test('nothing moves when a summary arrives', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const page = await stage.signedIn();
  let answer;
  await save(page, stage.site.put('/slow', (response) => (answer = () => response.writeHead(200, { 'content-type': 'text/html' }).end(story('The fox')))));
  await until('the page is asked for', () => answer !== undefined);
  await untilRows(page, 'it is being read', (found) => found[0]?.state === 'processing');
  const height = () => page.$eval('#list > li', (row) => row.getBoundingClientRect().height);
  const before = await height();
  answer();
  await untilRows(page, 'done', (found) => found[0]?.state === 'done');
  assert.equal(await height(), before);
});
