// The small window of the bookmarklet and of the Share menu.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';

import { ready, Stage, story, until } from './stage.js';

const said = (window, text) => until(`it says ${text}`, async () => text.test(await window.textContent('#said')));

/** Presses the bookmarklet on a page, and returns the window that it opens. */
async function press(stage, url) {
  const list = await stage.tab();
  const bookmarklet = decodeURI(await list.getAttribute('#menu .bookmarklet', 'href'));
  assert.doesNotMatch(bookmarklet, /bm_/, 'it contains no token');
  const page = await stage.context.newPage();
  await page.goto(url);
  const opened = stage.context.waitForEvent('page');
  await page.evaluate(bookmarklet.slice('javascript:'.length));
  return { window: await opened, code: /#([0-9a-f]{32})/.exec(bookmarklet)[1] };
}

test('one press of the bookmarklet saves the page with its title, and the window closes', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  await stage.signedIn();
  // The page cannot be read by the service: the title comes from the browser.
  let reads = 0;
  const url = stage.site.put('/members', (response) => response.writeHead(reads++ ? 403 : 200, { 'content-type': 'text/html' }).end(story('My private dashboard')));
  const { window } = await press(stage, url);
  const closed = once(window, 'close');
  await said(window, /^Saved\. This window closes automatically/);
  await closed;
  const [saved] = await stage.bookmarks();
  assert.deepEqual([saved.url, saved.created_from, saved.title], [url, 'bookmarklet', 'My private dashboard']);
});

test('without the server, the window says that the link is stored and will be sent', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const list = await stage.signedIn();
  await list.waitForFunction(() => navigator.serviceWorker.controller !== null);
  for (const isGone of [false, true]) {
    // It first accepts the save and does not respond; then it is gone.
    await stage.context.unrouteAll();
    if (isGone) await stage.killProduct();
    else await stage.context.route('**/v1/bookmarks', () => {});
    const page = await stage.context.newPage();
    await page.goto(stage.site.put(`/${isGone}`, story('The fox')));
    const opened = stage.context.waitForEvent('page');
    await page.evaluate(decodeURI(await list.getAttribute('#menu .bookmarklet', 'href')).slice('javascript:'.length));
    const window = await opened;
    await said(window, /^Stored on this device\. It will be sent when the server can be reached\./);
    await window.close();
  }
  await stage.startProduct();
  await list.evaluate(() => dispatchEvent(new Event('online')));
  await until('both are saved', async () => (await stage.bookmarks()).length === 2);
});

test('the bookmarklet says what works at its address', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const here = await stage.signedIn();
  assert.match(await here.textContent('#bookmarklet-how'), /saves the page you are on, in the browsers of this computer only/);
  assert.ok(await here.isHidden('#menu .not-secure'));
  // As on another machine without TLS.
  await stage.context.addInitScript(() => {
    Object.defineProperty(Crypto.prototype, 'subtle', { get: () => undefined });
    Object.defineProperty(globalThis, 'isSecureContext', { value: false });
  });
  const plain = await stage.tab();
  await plain.click('#open-menu');
  for (const [how, not] of [
    [/opens a small window; press Save in it/, /does not open offline/],
    [/「保存」を押します/, /オフラインで開いたり/],
  ]) {
    assert.match(await plain.textContent('#bookmarklet-how'), how);
    assert.match(await plain.textContent('#menu .not-secure'), not);
    assert.ok(await plain.isVisible('#menu .not-secure'));
    await plain.click('#menu .close');
    await plain.click('#language');
    await plain.click('#open-menu');
  }
  const bookmarklet = decodeURI(await plain.getAttribute('#menu .bookmarklet', 'href'));
  const page = await stage.context.newPage();
  await page.goto(stage.site.put('/fox', story('The fox')));
  const opened = stage.context.waitForEvent('page');
  await page.evaluate(bookmarklet.slice('javascript:'.length));
  const window = await opened;
  await window.waitForSelector('#go:enabled');
  assert.deepEqual(await stage.bookmarks(), [], 'it waits for the press');
  await window.click('#go');
  await until('it is saved', async () => (await stage.bookmarks()).length === 1);
});

test('what the bookmarklet saved can be undone in its window, what was there before cannot', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  await stage.signedIn();
  const url = stage.site.put('/fox', story('The fox'));
  const { window } = await press(stage, url);
  await window.click('#undo');
  await said(window, /^Removed again/);
  assert.deepEqual(await stage.bookmarks(), []);
  const { window: second } = await press(stage, url);
  await said(second, /^Saved/);
  await second.click('#close').catch(() => {});
  const { window: third } = await press(stage, url);
  await said(third, /^You saved this before/);
  assert.ok(!(await third.isVisible('#undo')));
  assert.equal((await stage.bookmarks()).length, 1);
});

test('a window that another site opens saves nothing without a press', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  await stage.signedIn();
  const url = encodeURIComponent(stage.site.put('/fox', story('The fox')));
  for (const end of ['', '#', `#${'0'.repeat(32)}`]) {
    const window = await stage.tab(`/save?from=bookmarklet&title=A+fox&url=${url}${end}`);
    await window.waitForSelector('#go:enabled');
    assert.deepEqual(await stage.bookmarks(), []);
  }
});

test("one person's code does not save in another's name", async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  await stage.signedIn();
  const { window, code } = await press(stage, stage.site.put('/fox', story('The fox')));
  await said(window, /^Saved/);
  const ann = await stage.addPerson('ann');
  await stage.signedIn(ann);
  const theirs = await stage.tab(`/save?from=bookmarklet&url=${encodeURIComponent(`${stage.site.url}/dog`)}#${code}`);
  await theirs.waitForSelector('#go:enabled');
  assert.deepEqual(await stage.bookmarks(ann), []);
});

test('the page of the Share menu saves on a press, after signing in if necessary', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const url = stage.site.put('/fox', story('The fox'));
  const page = await stage.context.newPage();
  const shared = `/save?title=%E2%80%AEThe+fox&text=${encodeURIComponent(`見て「${url}」。`)}`;
  await page.goto(stage.url + shared);
  await page.waitForURL(/sign-in/);
  await page.fill('#token', 'bm_wrong');
  await page.click('#sign-in button');
  await until('it says that the token is wrong', async () => /not valid/.test(await page.textContent('#hint')));
  await page.fill('#token', stage.token);
  await page.click('#sign-in button');
  await page.waitForURL(stage.url + shared);
  await ready(page);
  assert.deepEqual([await page.title(), await page.textContent('#title'), await page.textContent('#host')], ['Save this page', 'The fox', url]);
  assert.deepEqual(await stage.bookmarks(), []);
  await page.click('#go');
  await said(page, /^Saved/);
  assert.deepEqual((await stage.bookmarks()).map(({ created_from }) => created_from), ['share']);
});
