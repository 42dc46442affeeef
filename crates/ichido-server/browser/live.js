// What a page shows later: the same with longer numbers, times and states. The browser gets it when an open page refreshes itself, so a test
// knows when the page changes, and that its values are the longest.
import assert from 'node:assert/strict';

import { layoutShifts } from './stage.js';

/** The longest values that a person sees: numbers, times, and in the tables of queues, nodes and destinations the state. */
const LONGER = [
  [/>[\d,]+</g, '>12,345,678<'],
  [/>–</g, '>119 min<'],
  [/\b\d+(\.\d+)? (ms|s|min|h|d)\b/g, '119 min'],
  [/\d+ (秒|分|時間|日)/g, '119 分'],
  [/(<tr id="(?:queue|n|d)-[^]*?<\/svg>)[^<]*/g, '$1nobody serves it'],
];
/** What does not change while a page is open: choices, and what happened before. */
const FIXED = /(<ul class="chips"[^]*?<\/ul>|<ol class="timeline">[^]*?<\/ol>)/;
const MARK = 'longer values';

const longer = (html) => {
  const parts = html.split(FIXED).map((part) => (FIXED.test(part) ? part : LONGER.reduce((text, [pattern, value]) => text.replaceAll(pattern, value), part)));
  return parts.join('').replace(/(<span id="cost"[^>]* title=")[^"]*/, `$1${MARK}`);
};

/** Gives all pages of a profile longer values when they refresh themselves. */
export const growing = (context) =>
  context.route((url) => !/^\/(assets|live)/.test(url.pathname), async (route) => {
    try {
      if (!('ichido-refresh' in route.request().headers())) return await route.continue();
      const response = await route.fetch();
      return await route.fulfill({ response, body: longer(await response.text()) });
    } catch {
      // The page has gone on to another address.
      return null;
    }
  });

/** Waits until a page has refreshed itself, and asserts that nothing on it moved and that it shows all of it. */
export async function assertSteady(page, what) {
  // What a browser says when a person comes back to a page.
  await page.evaluate(() => dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true })));
  await page.waitForFunction((mark) => document.getElementById('cost').title === mark, MARK, { polling: 50 });
  assertStill(await layoutShifts(page), `${what}: longer values`);
  assert.equal(await page.locator('#live-state button').count(), 0, `${what}: nothing is held back because it would move something`);
}

/** Asserts that nothing moved. */
export const assertStill = (shifts, what) => assert.equal(shifts.flatMap(({ sources }) => sources).join('; '), '', `${what}: nothing moves`);
