// Takes the README's screenshots: the real page in a real browser, with made-up links.
//   cd clients/js && npm run screenshots
import { mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';

import { rows, save, Stage, until } from './stage.js';

const FOLDER = fileURLToPath(new URL('../screenshots/', import.meta.url));
const PHONE = { width: 390, height: 844 };
const DESK = { width: 1100, height: 820 };

/** A bookmark as the server returns it, saved this many minutes ago. */
const bookmark = (id, minutes, rest) => ({
  id, status: 'done', title: null, summary: null, summary_by: null, error_code: null, error_message: null, can_retry: false, retry_at: null,
  created_at: new Date(Date.now() - minutes * 60_000).toISOString(), ...rest,
});

const LINKS = [
  bookmark('1', 0, { url: 'https://www.postgresql.org/docs/current/wal-intro.html', status: 'processing' }),
  bookmark('2', 4, {
    url: 'https://www.rfc-editor.org/rfc/rfc9110.html', title: 'RFC 9110: HTTP Semantics', summary_by: 'model',
    summary: 'Defines the meaning of HTTP requests in every version of the protocol: methods, status codes and fields. A method is idempotent if sending it several times is meant to have the same effect as sending it once.',
  }),
  bookmark('3', 19, {
    url: 'https://status.example.com/incidents/7', title: 'Elevated error rates', status: 'retrying', error_code: 'page_busy', can_retry: true, error_message: 'The site is too busy at the moment',
    retry_at: new Date(Date.now() + 8 * 60_000).toISOString(),
  }),
  bookmark('4', 95, {
    url: 'https://news.example.jp/2026/11/coffee', title: '山の喫茶店が百年続いた理由', summary_by: 'extract',
    summary: '駅から歩いて一時間、山の中腹に一軒の喫茶店がある。三代目の店主は毎朝四時に起き、湧き水を汲みに行く。',
  }),
  bookmark('5', 60 * 5, {
    url: 'https://intranet.example.com/wiki/runbook', title: 'intranet.example.com/wiki/runbook', status: 'failed', error_code: 'page_refused',
    error_message: 'The site did not show the page; you may have to sign in there',
  }),
  bookmark('6', 60 * 50, {
    url: 'https://sqlite.org/wal.html', title: 'Write-Ahead Logging', summary_by: 'model',
    summary: 'Changes are appended to a log beside the database instead of being written into it: readers do not block the writer, and the writer does not block readers.',
  }),
];

/** A tab with the list of links. */
async function listed(stage) {
  await stage.context.route(/\/v1\/bookmarks\?/, (route) => route.fulfill({ json: { bookmarks: LINKS, next: null } }));
  const page = await stage.signedIn();
  await until('the links are there', async () => (await rows(page)).length === LINKS.length);
  return page;
}

async function take(page, name, { size, colorScheme = 'light' }) {
  await page.setViewportSize(size);
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
  await page.evaluate(() => {
    const style = new CSSStyleSheet();
    style.replaceSync('html { scrollbar-width: none }');
    document.adoptedStyleSheets = [style];
    document.activeElement?.blur();
    return document.fonts.ready;
  });
  await page.screenshot({ path: `${FOLDER}${name}.png` });
}

test('screenshots', async (t) => {
  await mkdir(FOLDER, { recursive: true });
  const stage = await Stage.start(t, 'sqlite', { screen: { deviceScaleFactor: 1.5, hasTouch: true, isMobile: true } });
  const phone = await listed(stage);
  await take(phone, 'phone-light', { size: PHONE });
  await take(phone, 'phone-dark', { size: PHONE, colorScheme: 'dark' });
  await phone.click('#language');
  await take(phone, 'phone-japanese', { size: PHONE });
  await phone.click('#language');
  await stage.context.setOffline(true);
  await save(phone, 'https://blog.example.com/retries-that-do-not-double-charge');
  await until('it waits', async () => (await rows(phone)).length === LINKS.length + 1);
  await take(phone, 'phone-offline', { size: PHONE });
  await stage.context.setOffline(false);

  const desk = await Stage.start(t, 'sqlite', { screen: { deviceScaleFactor: 1.5 } });
  const page = await listed(desk);
  await take(page, 'desktop-light', { size: DESK });
  await take(page, 'desktop-dark', { size: DESK, colorScheme: 'dark' });
  const small = await desk.tab('/save?from=bookmarklet&url=https://sqlite.org/wal.html&title=Write-Ahead%20Logging');
  // A button is enabled after its page was visible for a moment.
  await small.waitForSelector('#go:enabled');
  await take(small, 'window', { size: { width: 440, height: 420 } });
});
