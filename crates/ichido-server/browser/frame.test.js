// The navigation at widths from a phone to a desk: its menu is on the screen below its button, and a badge covers no name.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { on, until } from './stage.js';

/** Those where the row of pages is a grid, is broken, and is whole. */
const WIDTHS = [360, 640, 800, 1024, 1280, 1440];
/** More than a badge names. */
const MANY = 100;

const tabOf = async (stage, locale, width) => stage.tab('/', await stage.context({ locale, viewport: { width, height: 900 } }));

test('the menu of further pages is on the screen at each width', on('sqlite', async (stage) => {
  for (const locale of ['en-US', 'ja-JP']) {
    for (const width of WIDTHS) {
      const page = await tabOf(stage, locale, width);
      await page.click('.more > summary');
      const { left, right } = await page.$eval('.more > div', (menu) => menu.getBoundingClientRect().toJSON());
      assert.ok(0 <= left && right <= width, `${locale}, ${width} px: from ${left} to ${right}`);
      const button = await page.$eval('.more > summary', (summary) => summary.getBoundingClientRect().toJSON());
      assert.ok(left <= button.left + 1 && button.right <= right + 1, `${locale}, ${width} px: below its button, from ${button.left} to ${button.right}`);
      // The last page of the menu can be reached.
      await page.click('.more > div a >> nth=-1');
      await page.waitForURL(/\/audit$/);
      await page.context().close();
    }
  }
}));

test('the frame of a phone leaves room for the page and names its host', on('sqlite', async (stage) => {
  for (const locale of ['en-US', 'ja-JP']) {
    const page = await tabOf(stage, locale, 360);
    const { height } = await page.$eval('.top', (top) => top.getBoundingClientRect().toJSON());
    assert.ok(height <= 180, `${locale}: ${height} px`);
    assert.ok(await page.$eval('.instance', ({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth), `${locale}: the host is not cut`);
    await page.context().close();
  }
}));

test('the longest badge covers no name of a page', on('sqlite', async (stage) => {
  stage.receiver.break(() => ({ status: 400, body: { error: 'the market is closed' } }));
  await stage.sendAll('orders', Array.from({ length: MANY }, (_, at) => ({ key: `order-${at}`, body: { qty: String(at) } })));
  await stage.untilCounts('orders', { dead: MANY });
  for (const locale of ['en-US', 'ja-JP']) {
    for (const width of WIDTHS) {
      const page = await tabOf(stage, locale, width);
      await until('the badge is there', async () => {
        if ((await page.locator('.badge span', { hasText: '99+' }).count()) > 0) return true;
        await page.reload();
        return false;
      });
      const covered = await page.$$eval('.top nav a:has(.badge span)', (links) => links.filter((link) => {
        const name = document.createRange();
        name.selectNode(link.firstChild);
        const [text, badge] = [name.getBoundingClientRect(), link.querySelector('.badge span').getBoundingClientRect()];
        const across = Math.min(text.right, badge.right) - Math.max(text.left, badge.left);
        const down = Math.min(text.bottom, badge.bottom) - Math.max(text.top, badge.top);
        // They may touch.
        return 1 < across && 1 < down;
      }).map((link) => link.textContent));
      assert.deepEqual(covered, [], `${locale}, ${width} px`);
      await page.context().close();
    }
  }
}));
