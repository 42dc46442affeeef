// Two people in one browser: the cookie belongs to the browser, and each page to one person.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ready, rows, save, signOut, Stage, story, until, untilRows } from './stage.js';

/** Ann and the first person, each with a token, in one browser. */
async function two(t, wanted) {
  const stage = await Stage.start(t, 'sqlite', wanted);
  return { stage, ann: await stage.addPerson('ann') };
}

/** Signs a person in without the open pages noticing. */
const signInUnseen = (stage, token) =>
  stage.context.request.post(`${stage.url}/session`, { data: { token }, headers: { origin: stage.url } }).then((answer) => assert.equal(answer.status(), 204));

/** Everything that a script of our origin could still read. */
const readable = (page) =>
  page.evaluate(async () => {
    const all = [JSON.stringify({ ...localStorage }), await (await fetch('/v1/bookmarks?', { cache: 'force-cache' })).text()];
    for (const { name } of await indexedDB.databases()) {
      const db = await new Promise((resolve, reject) => {
        const opening = indexedDB.open(name);
        opening.onsuccess = () => resolve(opening.result);
        opening.onerror = () => reject(opening.error);
      });
      for (const store of db.objectStoreNames) {
        const rows = db.transaction(store).objectStore(store).getAll();
        await new Promise((resolve) => (rows.onsuccess = resolve));
        all.push(JSON.stringify(rows.result));
      }
      db.close();
    }
    return all.join('\n');
  });

test("a save during another person's sign-in is not done in their name", async (t) => {
  // A service worker would send it past the route below.
  const { stage, ann } = await two(t, { serviceWorkers: 'block' });
  const mine = await stage.signedIn();
  // Between the check who is signed in and the save, the cookie becomes another person's.
  const asksWho = async (route) => {
    const answer = await route.fetch();
    await signInUnseen(stage, ann);
    await route.fulfill({ response: answer });
  };
  await stage.context.route('**/v1/me', asksWho, { times: 1 });
  await save(mine, stage.site.put('/mine', story('Mine')));
  await until("it is ann's page now", async () => (await mine.textContent('#who')) === 'ann');
  assert.deepEqual([await stage.bookmarks(ann), await stage.bookmarks()], [[], []]);
  // It is still stored for its own person and is sent when they are back.
  const back = await stage.signedIn();
  await untilRows(back, 'done', (found) => found[0]?.state === 'done');
  assert.deepEqual([(await stage.bookmarks(ann)).length, (await stage.bookmarks()).length], [0, 1]);
});

test("a tab of one person neither shows nor saves another's bookmarks", async (t) => {
  const { stage, ann } = await two(t);
  const mine = await stage.signedIn();
  await save(mine, stage.site.put('/mine', story('Mine')));
  await untilRows(mine, 'mine', (found) => found[0]?.state === 'done');
  await signInUnseen(stage, ann);
  const kept = stage.site.put('/kept', story('Kept'));
  // The tab does not know of it: its save is not sent, and the page becomes that of the signed-in person.
  await save(mine, kept);
  await until("it is ann's page now", async () => (await mine.textContent('#who')) === 'ann');
  await ready(mine);
  assert.deepEqual(await rows(mine), []);
  assert.deepEqual(await stage.bookmarks(ann), []);
  const list = await mine.evaluate(() => localStorage.getItem('list'));
  assert.doesNotMatch(list ?? '', /Mine/, 'the first list is not stored as hers');
  // The save waits for its own person.
  const back = await stage.signedIn();
  await untilRows(back, 'both are mine', (found) => found.length === 2 && found.every(({ state }) => state === 'done'));
  await until("ann's page is reloaded", async () => (await mine.textContent('#who')) === 'me');
});

test('signing out leaves nothing readable but waiting saves', async (t) => {
  const { stage } = await two(t);
  const page = await stage.signedIn();
  const other = await stage.tab();
  await save(page, stage.site.put('/fox', story('Secret fox')));
  await untilRows(page, 'done', (found) => found[0]?.state === 'done');
  await stage.context.setOffline(true);
  await save(page, stage.site.put('/dog', story('The dog')));
  await untilRows(page, 'it waits', (found) => found.length === 2);
  // Offline nobody can sign out, and the page says so.
  const asked = [];
  page.on('dialog', (dialog) => (asked.push(dialog.message()), dialog.accept()));
  await signOut(page);
  await until('it says why not', async () => /Cannot reach the server/.test(await page.textContent('#hint')));
  assert.match(asked[0], /1 page is not saved yet/);
  await stage.context.setOffline(false);
  await untilRows(page, 'both', (found) => found.length === 2 && found.every(({ state }) => state === 'done'));
  await signOut(page);
  for (const tab of [page, other]) await tab.waitForURL(/sign-in/);
  assert.equal(asked.length, 1, 'nothing is waiting any more');
  assert.doesNotMatch(await readable(page), /fox|dog/i);
});

test('a session that was ended leaves nothing readable either', async (t) => {
  const { stage, ann } = await two(t);
  const page = await stage.signedIn();
  await save(page, stage.site.put('/fox', story('Secret fox')));
  await untilRows(page, 'done', (found) => found[0]?.state === 'done');
  assert.match(await readable(page), /Secret fox/, 'there is something to delete');
  await stage.renew('me');
  await page.reload();
  await page.waitForURL(/sign-in/);
  await until('nothing is left', async () => !/fox/i.test(await readable(page)));
  // The same if another person signs in over them.
  const hers = await stage.signedIn(ann);
  await save(hers, stage.site.put('/dog', story('Secret dog')));
  await untilRows(hers, 'done', (found) => found[0]?.state === 'done');
  stage.token = await stage.renew('me');
  const mine = await stage.signedIn();
  assert.doesNotMatch(await readable(mine), /dog/i);
});

test('a held key presses no button, a deliberate press does', async (t) => {
  const { stage, ann } = await two(t);
  const page = await stage.signedIn();
  const url = stage.site.put('/fox', story('The fox'));
  for (const [path, button] of [[`/save?url=${encodeURIComponent(url)}`, '#go'], [`/sign-in#token=${ann}`, '#sign-in button']]) {
    // The key is pressed on a foreign page.
    await page.goto('about:blank');
    await page.keyboard.down('Enter');
    await page.goto(stage.url + path);
    await page.waitForSelector(`${button}:enabled`);
    for (let times = 0; times < 20; times++) await page.keyboard.down('Enter');
    await page.keyboard.up('Enter');
  }
  const me = await page.evaluate(async () => (await fetch('/v1/me')).json());
  assert.deepEqual([me.name, await stage.bookmarks()], ['me', []]);
  await page.goto(`${stage.url}/save?url=${encodeURIComponent(url)}`);
  await page.waitForSelector('#go:focus');
  await page.keyboard.press('Enter');
  await until('it is saved', async () => (await stage.bookmarks()).length === 1);
});

test('a sign-in link needs a press and shows who is signed in', async (t) => {
  const { stage, ann } = await two(t);
  await stage.signedIn();
  const page = await stage.context.newPage();
  await page.goto(`${stage.url}/sign-in#token=${ann}`);
  await until('it says who is here', async () => /signed in as me\b/.test(await page.textContent('#who')));
  const me = await page.evaluate(async () => (await fetch('/v1/me')).json());
  assert.equal(me.name, 'me', 'the link alone does nothing');
  await page.click('#sign-in button');
  await page.waitForURL(`${stage.url}/`);
  await ready(page);
  assert.equal(await page.textContent('#who'), 'ann');
});
