// Every page, in each language, theme and width, with a full and an empty store and while the store is away: axe-core finds nothing serious,
// nothing sticks out, and nothing moves by the browser's own measure.
//
// By default each page of a full store is visited twice, so it is seen in both languages, both themes and both widths. Of an empty store
// and of one that is away, where many pages say the same, each third page is visited once. ICHIDO_DASHBOARD_MATRIX=whole visits all combinations on both
// databases: `cargo xtask soak`.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { assertAccessible } from '../../../clients/js/test/browser/shared.js';
import { fill, MORE, untilAlerts } from './fill.js';
import { PAGES, pathOf } from './pages.js';
import { IS_WHOLE, layoutShifts, notice, Stage, until } from './stage.js';

/** How many tabs work at once. */
const AT_ONCE = 3;
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

/** The looks in which a page is visited: all, or one that alternates from page to page, and for a full store also its opposite. */
function looksOf(at, state) {
  if (IS_WHOLE) return looks;
  const look = looks[at % looks.length];
  return state === 'full' ? [look, opposite(look)] : [look];
}

/** Runs the work for each item, a few at once. */
async function each(items, work) {
  const rest = [...items];
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) await work(item);
  }));
}

/** The profiles of one stage, by look. */
class Profiles {
  constructor(stage, role) {
    Object.assign(this, { stage, role, known: new Map() });
  }

  /** Returns a profile; it has a session unless the page is open to everybody. */
  get(look, isOpen) {
    const name = JSON.stringify([look, isOpen]);
    if (!this.known.has(name)) this.known.set(name, this.#make(look, isOpen));
    return this.known.get(name);
  }

  async #make({ locale, colorScheme, width }, isOpen) {
    const context = await this.stage.context({ locale, colorScheme, viewport: { width, height: 900 }, reducedMotion: 'reduce' });
    if (this.role && !isOpen) await (await this.stage.signedIn(this.role, '/queues', context)).close();
    return context;
  }
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
  assert.deepEqual(await layoutShifts(page), [], `${what}: nothing moves`);
}

/** Visits every page, and asserts that it is well. */
async function visitAll(stage, state, { role, ids, pages = PAGES, status }) {
  const profiles = new Profiles(stage, role);
  const chosen = IS_WHOLE || state === 'full' ? pages : pages.filter((_, at) => at % 3 === 0);
  const visits = chosen.flatMap((page, at) => looksOf(at, state).map((look) => ({ page, look })));
  await each(visits, async ({ page, look }) => {
    const what = `${page.name}, ${state}, ${JSON.stringify(look)}`;
    const tab = await stage.tab(null, await profiles.get(look, page.isOpen));
    const answer = await tab.goto(stage.url + pathOf(page, ids));
    assert.equal(answer.status(), status(page), what);
    await assertWell(tab, what, look);
    await tab.close();
  });
  return visits.length;
}

const kinds = IS_WHOLE ? ['sqlite', 'postgres'] : ['sqlite'];

test('every page of a full store is well in each language, theme and width', async (t) => {
  for (const kind of kinds) {
    await t.test(kind, async (t) => {
      const stage = await Stage.start(t, kind, { roles: ['admin'], more: MORE });
      const ids = await fill(stage);
      // One that fires later would add a line to the overview, which moves what is below.
      await untilAlerts(stage);
      t.diagnostic(`${await visitAll(stage, 'full', { role: 'admin', ids, status: wrongFilter })} visits`);
    });
  }
});

test('every page of an empty store is well in each language, theme and width', async (t) => {
  for (const kind of kinds) {
    await t.test(kind, async (t) => {
      const stage = await Stage.start(t, kind, { roles: ['admin'] });
      const status = (page) => (page.path.includes('{') && !page.isAlways ? 404 : wrongFilter(page));
      t.diagnostic(`${await visitAll(stage, 'empty', { role: 'admin', status })} visits`);
    });
  }
});

test('every page is well while the store is away', async (t) => {
  const stage = await Stage.start(t, 'stoppable', { more: MORE });
  const ids = await fill(stage, { count: 6 });
  // Pages that were opened before say so, in each language, theme and width.
  const live = PAGES.filter(({ path, isOpen }) => !isOpen && path !== '/help');
  const open = await Promise.all(looksOf(1, 'full').map(async (look, at) => {
    const { locale, colorScheme, width } = look;
    const context = await stage.context({ locale, colorScheme, viewport: { width, height: 900 } });
    const page = live[at % live.length];
    return { look, page, tab: await stage.tab(pathOf(page, ids), context) };
  }));
  await stage.stopDatabase();
  for (const { look, page, tab } of open) {
    await until('the page says it', async () => (await notice(tab)) !== '');
    await assertWell(tab, `${page.name}, open while the store went away, ${JSON.stringify(look)}`, look);
    await tab.close();
  }
  const count = await visitAll(stage, 'away', { ids, pages: PAGES.filter(({ isOpen }) => !isOpen), status: ({ path }) => (path === '/help' ? 200 : 503) });
  t.diagnostic(`${count + open.length} visits`);
});

/** The status of a page of a store that responds. */
function wrongFilter(page) {
  return page.name === 'messages-wrong-filter' ? 400 : 200;
}

test('live updates move nothing', async (t) => {
  // Without alerts: one that fires adds a line to the overview, at a time that the test does not know.
  const stage = await Stage.start(t, 'sqlite', { more: `${MORE}\n[alerts]\ndead_letter = false\ndead_letters = false\ndead_surge = false\nparked = false\nfailed_retries = false\n` });
  const ids = await fill(stage);
  const tabs = await Promise.all(PAGES.filter(({ isOpen }) => !isOpen).map(async (page, at) => {
    const { locale, colorScheme, width } = looks[at % looks.length];
    const tab = await stage.tab(pathOf(page, ids), await stage.context({ locale, colorScheme, viewport: { width, height: 900 } }));
    return { page, tab, isLive: await tab.evaluate(() => 'live' in document.body.dataset) };
  }));
  const live = tabs.filter(({ isLive }) => isLive);
  assert.ok(live.length > 5, 'most pages are live');
  const { sent } = await stage.counts('orders');
  await stage.send('orders', 'order-6000', { symbol: 'ACME' });
  const { tab: overview } = live.find(({ page }) => page.name === 'overview');
  await until('the overview shows it', async () => (await overview.textContent('#queue-orders')).includes(sent + 1));
  await until('the list of messages offers the newer one', async () => live.find(({ page }) => page.name === 'messages').tab.isVisible('#notice a, #live-state button'));
  for (const { page, tab } of live) assert.deepEqual(await layoutShifts(tab), [], page.name);
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
