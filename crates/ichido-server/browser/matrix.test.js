// Every page, in each language, theme and width, with a full and an empty store and while the store is away: axe-core finds nothing serious,
// nothing sticks out, and nothing moves by the browser's own measure, not even when each value on the page gets longer.
//
// In CI each page of a full store is visited once, in a language, theme and width that alternate from page to page. Of an empty store, where
// many pages say the same, each fifth page is visited, and of one that is away each tenth. ICHIDO_DASHBOARD_MATRIX=whole visits all
// combinations on both databases: `cargo xtask soak`.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { assertAccessible } from '../../../clients/js/test/browser/shared.js';
import { fill, MORE } from './fill.js';
import { assertSteady, assertStill, growing } from './live.js';
import { PAGES, pathOf } from './pages.js';
import { IS_WHOLE, layoutShifts, notice, on, Stage, until } from './stage.js';

/** How many tabs work at once. */
const AT_ONCE = 2;
/** How many messages a store has: in CI few, because axe-core looks at each row. */
const COUNT = IS_WHOLE ? 60 : 8;
/** Maximum bytes on the wire: the first page, its style, script and icon, and the script alone. */
const MAX_PAGE = 40 * 1024;
const MAX_ASSETS = 100 * 1024;
const MAX_SCRIPT = 20 * 1024;

const LANGUAGES = ['en-US', 'ja-JP'];
const THEMES = ['light', 'dark'];
const WIDTHS = [360, 1440];
const looks = LANGUAGES.flatMap((locale) => THEMES.flatMap((colorScheme) => WIDTHS.map((width) => ({ locale, colorScheme, width }))));

/** Plans the visits: of all pages in all looks, or of some pages, each in the next look. */
function planned(pages, every) {
  if (IS_WHOLE) return pages.flatMap((page) => looks.map((look) => ({ page, look })));
  return pages.filter((_, at) => at % every === 0).map((page, at) => ({ page, look: looks[at % looks.length] }));
}

/** Asserts what holds for every page in every look. */
async function assertWell(page, what, { locale, width }) {
  assert.equal(await page.getAttribute('html', 'lang'), locale.slice(0, 2), what);
  await assertAccessible(page, what);
  const sticksOut = await page.evaluate((width) => {
    const root = document.documentElement;
    return root.scrollWidth <= width ? [] : [root.scrollWidth, ...[...document.querySelectorAll('main *')].filter((node) => node.getBoundingClientRect().right > width && !node.closest('.scroll')).map((node) => node.outerHTML.slice(0, 120))];
  }, width);
  assert.deepEqual(sticksOut, [], `${what}: nothing sticks out`);
  assert.deepEqual(await doubledIds(page), [], `${what}: an id names one element`);
  assertStill(await layoutShifts(page), what);
}

const doubledIds = (page) =>
  page.evaluate(() => [...document.querySelectorAll('[id]')].map(({ id }) => id).filter((id, at, all) => all.indexOf(id) < at));

const profile = (stage, { locale, colorScheme, width }) => stage.context({ locale, colorScheme, viewport: { width, height: 900 }, reducedMotion: 'reduce' });

/** Signs in, which is slow, once for all profiles. */
async function session(stage) {
  const context = (await stage.signedIn('admin', '/nodes')).context();
  const cookies = await context.cookies();
  await context.close();
  return cookies;
}

/** Visits pages, and asserts that they are well. All visits in one look share a tab, unless the page is open to everybody. */
async function visitAll(stage, state, visits, { cookies = [], ids, status }) {
  const groups = new Map();
  for (const visit of visits) {
    const name = JSON.stringify([visit.look, visit.page.isOpen]);
    groups.set(name, [...(groups.get(name) ?? []), visit]);
  }
  const rest = groups.values();
  const faults = [];
  let live = 0;
  const work = async () => {
    for (const group of rest) {
      const [{ page, look }] = group;
      const context = await profile(stage, look);
      if (state === 'full') await growing(context);
      if (!page.isOpen) await context.addCookies(cookies);
      const tab = await stage.tab(null, context);
      for (const { page } of group) {
        const what = `${page.name}, ${state}, ${JSON.stringify(look)}`;
        await tab.goto(stage.url + pathOf(page, ids)).then(async (answer) => {
          assert.equal(answer.status(), status(page), what);
          await assertWell(tab, what, look);
          if (state !== 'full' || answer.status() !== 200 || !(await tab.evaluate(() => 'live' in document.body.dataset))) return;
          live += 1;
          await assertSteady(tab, what);
        }).catch((error) => faults.push(`${what}: ${error.message}`));
      }
      await context.close();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  // All at once, because a run takes minutes.
  assert.deepEqual(faults, []);
  return `${visits.length} visits, ${live} of them to pages that are live`;
}

/** The status of a page of a store that responds. */
function wrongFilter(page) {
  return page.name === 'messages-wrong-filter' ? 400 : 200;
}

test('every page of a full store is well in each language, theme and width, and live updates move nothing', on('sqlite', async (stage, t) => {
  const ids = await fill(stage, { count: COUNT });
  const cookies = await session(stage);
  await t.test('the first page, its files and its script are small on the wire', (t) => assertSmall(t, stage, cookies));
  t.diagnostic(await visitAll(stage, 'full', planned(PAGES, 1), { cookies, ids, status: wrongFilter }));
}, { roles: ['admin'], more: MORE }));

test('every page of an empty store is well in each language, theme and width', on('sqlite', async (stage, t) => {
  const status = (page) => (page.path.includes('{') && !page.isAlways ? 404 : wrongFilter(page));
  t.diagnostic(await visitAll(stage, 'empty', planned(PAGES, 5), { cookies: await session(stage), status }));
}, { roles: ['admin'] }));

test('every page is well while the store is away', async (t) => {
  const stage = await Stage.start(t, 'stoppable', { more: MORE });
  const ids = IS_WHOLE ? await fill(stage, { count: 6 }) : {};
  // Pages that were opened before say so.
  const live = PAGES.filter(({ path, isOpen }) => !isOpen && path !== '/help');
  const open = await Promise.all((IS_WHOLE ? looks : looks.slice(1, 3)).map(async (look, at) => {
    const page = live[at % live.length];
    return { page, look, tab: await stage.tab(pathOf(page, ids), await profile(stage, look)) };
  }));
  await stage.stopDatabase();
  for (const { look, page, tab } of open) {
    await until('the page says it', async () => (await notice(tab)) !== '');
    await assertWell(tab, `${page.name}, open while the store went away, ${JSON.stringify(look)}`, look);
    await tab.context().close();
  }
  const visits = planned(PAGES.filter(({ isOpen }) => !isOpen), 10);
  t.diagnostic(await visitAll(stage, 'away', visits, { ids, status: ({ path }) => (path === '/help' ? 200 : 503) }));
});

/** Asserts that a browser that has nothing yet gets little. */
async function assertSmall(t, stage, cookies) {
  const context = await stage.context();
  await context.addCookies(cookies);
  const page = await stage.tab('/', context);
  const sizes = await page.evaluate(() =>
    performance.getEntries().filter(({ transferSize }) => transferSize !== undefined).map(({ name, transferSize }) => [new URL(name).pathname, transferSize]));
  const sum = (pattern) => sizes.filter(([path]) => pattern.test(path)).reduce((total, [, size]) => total + size, 0);
  const [first, assets, script] = [sum(/^\/$/), sum(/^\/assets\//), sum(/^\/assets\/.*\.js$/)];
  t.diagnostic(`first page ${first} bytes, assets ${assets}, of which script ${script}`);
  assert.ok(0 < first && first <= MAX_PAGE, `first page: ${first}`);
  assert.ok(0 < assets && assets <= MAX_ASSETS, `assets: ${assets}`);
  assert.ok(0 < script && script <= MAX_SCRIPT, `script: ${script}`);
}
