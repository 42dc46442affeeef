// Takes the README's screenshots: the real page in a real browser, with made-up links.
//   cd clients/js && npm run screenshots
import { mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';

import { bookmark, rows, save, show, Stage, until } from './stage.js';

const FOLDER = fileURLToPath(new URL('../screenshots/', import.meta.url));
const PHONE = { width: 390, height: 844 };
const DESK = { width: 1100, height: 820 };

/** An icon as a site could have one: a letter on a colour. */
const ICONS = { r: '#7a1f5c', s: '#0f6e84', n: '#2b7a3d', g: '#24292f', f: '#b3541e', z: '#3a66d6', d: '#5a3fb0', w: '#4d4d4d' };
const drawn = (letter) =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="32" height="32"><rect width="32" height="32" rx="7" fill="${ICONS[letter]}"/><text x="16" y="23" font-family="sans-serif" font-size="20" font-weight="700" text-anchor="middle" fill="#fff">${letter.toUpperCase()}</text></svg>`;
const icon = (letter) => `/v1/icons/${letter}`;

const LINKS = [
  bookmark('1', 0, { url: 'https://www.postgresql.org/docs/current/wal-intro.html', title: 'PostgreSQL: Write-Ahead Logging (WAL)', status: 'processing', job_type: 'extraction' }),
  bookmark('2', 4, {
    url: 'https://www.rfc-editor.org/rfc/rfc9110.html', title: 'RFC 9110: HTTP Semantics', summary_by: 'model', icon: icon('r'), tags: ['http', 'standards'],
    summary: 'Defines the meaning of HTTP requests in every version of the protocol: methods, status codes and fields. A method is idempotent if sending it several times is meant to have the same effect as sending it once.',
  }),
  bookmark('3', 19, {
    url: 'https://status.example.com/incidents/7', title: 'Elevated error rates', status: 'retrying', error_code: 'page_busy', can_retry: true, error_message: 'The site is too busy at the moment',
    attempt: 1, max_attempts: 3, retry_at: new Date(Date.now() + 8 * 60_000).toISOString(),
  }),
  bookmark('4', 95, {
    url: 'https://news.example.jp/2026/11/coffee', title: '山の喫茶店が百年続いた理由', summary_by: 'extract', icon: icon('n'), tags: ['喫茶店'],
    summary: '駅から歩いて一時間、山の中腹に一軒の喫茶店がある。三代目の店主は毎朝四時に起き、湧き水を汲みに行く。',
  }),
  bookmark('5', 60 * 5, {
    url: 'https://intranet.example.com/wiki/runbook', title: 'Runbook: restore the orders database', status: 'failed', error_code: 'page_refused', can_retry: true,
    error_message: 'The site did not let us read the page',
  }),
  bookmark('6', 60 * 50, {
    url: 'https://sqlite.org/wal.html', title: 'Write-Ahead Logging', summary_by: 'model', icon: icon('s'), tags: ['databases', 'sqlite'],
    summary: 'Changes are appended to a log beside the database instead of being written into it: readers do not block the writer, and the writer does not block readers.',
  }),
  bookmark('7', 60 * 90, {
    url: 'https://github.com/tokio-rs/axum/issues/2741', title: 'axum::serve has no header read timeout · Issue #2741', summary_by: 'model', icon: icon('g'), tags: ['rust'],
    summary: 'hyper has a default timeout for headers, but it does nothing without a timer, and axum installs none.',
  }),
  bookmark('8', 60 * 24 * 12, {
    url: 'https://martinfowler.com/articles/patterns-of-distributed-systems/', title: 'Catalog of Patterns of Distributed Systems', summary_by: 'model', icon: icon('f'), tags: ['patterns'],
    summary: 'Short descriptions of recurring solutions: leader and followers, write-ahead log, idempotent receiver, lease.',
  }),
  bookmark('9', 60 * 24 * 30, {
    url: 'https://zenn.dev/articles/idempotency-key', title: 'Idempotency-Keyヘッダーの仕様を読む', summary_by: 'model', icon: icon('z'), tags: ['http', '冪等'],
    summary: 'IETFの草案をもとに、サーバーとクライアントの責務を整理する。キーの有効期限、衝突時の応答、再送の判断を例とともに説明する。',
  }),
  bookmark('10', 60 * 24 * 31, {
    url: 'https://dl.example.org/beyond.pdf', title: 'Life beyond Distributed Transactions', status: 'failed', error_code: 'page_not_text', can_retry: true, icon: icon('d'), tags: ['papers'],
  }),
];

/** A tab with the list of links. */
async function listed(stage) {
  await show(stage.context, LINKS);
  await stage.context.route(/\/v1\/icons\//, (route) => route.fulfill({ contentType: 'image/svg+xml', body: drawn(route.request().url().at(-1)) }));
  const page = await stage.signedIn();
  await until('the links are there', async () => (await rows(page)).length === LINKS.length);
  return page;
}

async function take(page, name, { size, colorScheme = 'light' }) {
  await page.setViewportSize(size);
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
  await page.evaluate(() => {
    const style = new CSSStyleSheet();
    style.replaceSync('html { scrollbar-width: none; scrollbar-gutter: auto }');
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
  const first = await desk.signedIn();
  await take(first, 'first-visit', { size: { width: 820, height: 560 } });
  const page = await listed(desk);
  await take(page, 'desktop-light', { size: DESK });
  await take(page, 'desktop-dark', { size: DESK, colorScheme: 'dark' });
  const code = /#([0-9a-f]{32})/.exec(decodeURI(await page.getAttribute('#menu .bookmarklet', 'href')))[1];
  const small = await desk.tab(`/save?from=bookmarklet&url=https://sqlite.org/wal.html&title=Write-Ahead%20Logging#${code}`);
  await until('it is saved', async () => /^Saved/.test(await small.textContent('#said')));
  await take(small, 'window', { size: { width: 440, height: 340 } });
});
