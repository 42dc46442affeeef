// Every page, in each language, theme and width, with a full and an empty store and while the store is away: axe-core finds nothing serious,
// nothing sticks out, and nothing moves by the browser's own measure, not even when each value on the page gets longer.
//
// In CI each page of a full store is visited twice, so it is seen in both languages, both themes and both widths; axe-core, which takes most
// of the time, runs once. Of an empty store, where many pages say the same, each third page is visited once, and of one that is away each
// tenth. ICHIDO_DASHBOARD_MATRIX=whole visits all combinations on both databases: `cargo xtask soak`.
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
/** The look in which everything is the other one. */
const opposite = ({ locale, colorScheme, width }) =>
  looks.find((look) => look.locale !== locale && look.colorScheme !== colorScheme && look.width !== width);

/** Plans the visits: in all looks, or in one that alternates from page to page, and then perhaps in its opposite. */
function planned(pages, { every = 1, isTwice = false } = {}) {
  if (IS_WHOLE) return pages.flatMap((page) => looks.map((look) => ({ page, look, hasAxe: true })));
  const chosen = pages.filter((_, at) => at % every === 0);
  return chosen.flatMap((page, at) => {
    const look = looks[at % looks.length];
    const once = { page, look, hasAxe: true };
    return isTwice ? [once, { page, look: opposite(look), hasAxe: false }] : [once];
  });
}

/** Asserts what holds for every page in every look. */
async function assertWell(page, what, { locale, width }, hasAxe) {
  assert.equal(await page.getAttribute('html', 'lang'), locale.slice(0, 2), what);
  if (hasAxe) await assertAccessible(page, what);
  const sticksOut = await page.evaluate((width) => {
    const root = document.documentElement;
    return root.scrollWidth <= width ? [] : [root.scrollWidth, ...[...document.querySelectorAll('main *')].filter((node) => node.getBoundingClientRect().right > width && !node.closest('.scroll')).map((node) => node.outerHTML.slice(0, 120))];
  }, width);
  assert.deepEqual(sticksOut, [], `${what}: nothing sticks out`);
  assertStill(await layoutShifts(page), what);
}

const profile = (stage, { locale, colorScheme, width }) => stage.context({ locale, colorScheme, viewport: { width, height: 900 }, reducedMotion: 'reduce' });

/** Visits pages, and asserts that they are well. All visits in one look share a tab, unless the page is open to everybody. */
async function visitAll(stage, state, visits, { role, ids, status }) {
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
      const tab = role && !page.isOpen ? await stage.signedIn(role, '/nodes', context) : await stage.tab(null, context);
      for (const { page, hasAxe } of group) {
        const what = `${page.name}, ${state}, ${JSON.stringify(look)}`;
        await tab.goto(stage.url + pathOf(page, ids)).then(async (answer) => {
          assert.equal(answer.status(), status(page), what);
          await assertWell(tab, what, look, hasAxe);
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
  t.diagnostic(await visitAll(stage, 'full', planned(PAGES, { isTwice: true }), { role: 'admin', ids, status: wrongFilter }));
}, { roles: ['admin'], more: MORE }));

test('every page of an empty store is well in each language, theme and width', on('sqlite', async (stage, t) => {
  const status = (page) => (page.path.includes('{') && !page.isAlways ? 404 : wrongFilter(page));
  t.diagnostic(await visitAll(stage, 'empty', planned(PAGES, { every: 3 }), { role: 'admin', status }));
}, { roles: ['admin'] }));

test('every page is well while the store is away', async (t) => {
  const stage = await Stage.start(t, 'stoppable', { more: MORE });
  const ids = await fill(stage, { count: 6 });
  // Pages that were opened before say so.
  const live = PAGES.filter(({ path, isOpen }) => !isOpen && path !== '/help');
  const open = await Promise.all((IS_WHOLE ? looks : looks.slice(1, 3)).map(async (look, at) => {
    const page = live[at % live.length];
    return { page, look, tab: await stage.tab(pathOf(page, ids), await profile(stage, look)) };
  }));
  await stage.stopDatabase();
  for (const { look, page, tab } of open) {
    await until('the page says it', async () => (await notice(tab)) !== '');
    await assertWell(tab, `${page.name}, open while the store went away, ${JSON.stringify(look)}`, look, true);
    await tab.context().close();
  }
  const visits = planned(PAGES.filter(({ isOpen }) => !isOpen), { every: 10 });
  t.diagnostic(await visitAll(stage, 'away', visits, { ids, status: ({ path }) => (path === '/help' ? 200 : 503) }));
});

test('the first page, its files and its script are small on the wire', async (t) => {
  const stage = await Stage.start(t, 'sqlite', { more: MORE });
  await fill(stage);
  const page = await stage.tab('/');
  const sizes = await page.evaluate(() =>
    performance.getEntries().filter(({ transferSize }) => transferSize !== undefined).map(({ name, transferSize }) => [new URL(name).pathname, transferSize]));
  const sum = (pattern) => sizes.filter(([path]) => pattern.test(path)).reduce((total, [, size]) => total + size, 0);
  const [first, assets, script] = [sum(/^\/$/), sum(/^\/assets\//), sum(/^\/assets\/.*\.js$/)];
  t.diagnostic(`first page ${first} bytes, assets ${assets}, of which script ${script}`);
  assert.ok(0 < first && first <= MAX_PAGE, `first page: ${first}`);
  assert.ok(0 < assets && assets <= MAX_ASSETS, `assets: ${assets}`);
  assert.ok(0 < script && script <= MAX_SCRIPT, `script: ${script}`);
});
