// Takes the pictures of the documentation: the real pages in a real browser, with made-up orders that really flow for some minutes.
//   cd clients/js && npm run screenshots:dashboard
import { mkdir, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { fill, LONG_QUEUE, MORE as FILLED, order, untilAlerts } from './fill.js';
import { PAGES, pathOf } from './pages.js';
import { small } from './png.js';
import { Stage, until } from './stage.js';

const FOLDER = fileURLToPath(new URL('../../../docs/images/', import.meta.url));
const SCREEN = { width: 1360, height: 850 };
/** How long orders flow before the pictures are taken, so the charts show something. */
const MINUTES = Number(process.env.ICHIDO_SCREENSHOTS_MINUTES ?? 6);
/** The server has a name, and the bank can be asked about a transfer. */
const MORE = `${FILLED.replace('[serve]', '[serve]\nname = "orders, production"').replace(LONG_QUEUE, 'settlements')}
[destinations.bank.reconcile]
url = "RECEIVER/payments/by-key/{key}"
rules = [{ status = "200", means = "done" }, { status = "404", means = "not_done" }]
`;

/** Sends orders until it is told to stop: more and less, as on a trading day. */
async function traffic(stage, isOver) {
  for (let second = 0; !isOver(); second++) {
    const count = Math.round(6 + 4 * Math.sin(second / 25) + 2 * Math.sin(second / 7));
    const lines = Array.from({ length: count }, (_, at) => ({ key: `order-${10_000 + second * 20 + at}`, body: order(second + at) }));
    await stage.sendAll('orders', lines);
    await sleep(1_000);
  }
}

/** The picture of the README: a payment whose response was lost, and which the receiver knows by its key. */
const README = { name: 'was-it-done', path: '/messages/{late}' };

async function take(page, name) {
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.evaluate(() => {
      const style = new CSSStyleSheet();
      style.replaceSync('html { scrollbar-width: none; scrollbar-gutter: auto }');
      document.adoptedStyleSheets = [style];
      document.activeElement?.blur();
      return document.fonts.ready;
    });
    await writeFile(`${FOLDER}dashboard-${name}-${colorScheme}.png`, small(await page.screenshot()));
  }
}

test('screenshots', async (t) => {
  await mkdir(FOLDER, { recursive: true });
  const stage = await Stage.start(t, 'sqlite', { roles: ['admin'], more: MORE });
  const ids = await fill(stage, { long: '5600', longQueue: 'settlements' });
  ids.late = await stage.send('payments', 'payment-882', { amount: '480.00', currency: 'EUR', to: 'late', order: 'order-5208' });
  let isOver = false;
  const flowing = traffic(stage, () => isOver);
  await sleep(MINUTES * 60_000);
  await untilAlerts(stage);
  await until('the receiver was asked', async () => (await stage.api('GET', `/v1/messages/${ids.late}`)).status === 'sent');
  const context = await stage.context({ viewport: SCREEN, deviceScaleFactor: 1 });
  const page = await stage.signedIn('admin', '/', context);
  for (const shown of [README, ...PAGES.filter(({ isShot }) => isShot)]) {
    const tab = shown.isOpen ? await stage.tab(null, await stage.context({ viewport: SCREEN })) : page;
    await tab.goto(stage.url + pathOf(shown, ids));
    await tab.waitForLoadState();
    await take(tab, shown.name);
  }
  isOver = true;
  await flowing;
});
