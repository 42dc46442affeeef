// Everything one test needs: the real server with a real database, a receiver that can be broken, and tabs of a real browser.
import assert from 'node:assert/strict';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { built, kill, PATIENCE_MS, started } from '../../../clients/js/test/browser/program.js';
import { dialogue, freshDatabase, newContext } from '../../../clients/js/test/browser/shared.js';
import { Receiver } from './receiver.js';

/** In the soak, tests visit everything, on both databases, and wait for what takes minutes. */
export const IS_WHOLE = process.env.ICHIDO_DASHBOARD_MATRIX === 'whole';
/** The option of a test that costs CI too much. */
export const IN_SOAK = { skip: !IS_WHOLE && 'it runs in the soak' };

/** How often a condition is checked: often at first, then seldom, because a check costs the server and the browser time. */
const FIRST_PAUSE_MS = 20;
const MAX_PAUSE_MS = 250;

/** Waits until `condition` returns something. */
export async function until(what, condition, patience = PATIENCE_MS) {
  for (let [waited, pause] = [0, FIRST_PAUSE_MS]; waited < patience; waited += pause, pause = Math.min(1.3 * pause, MAX_PAUSE_MS)) {
    const found = await condition();
    if (found) return found;
    await sleep(pause);
  }
  throw new Error(`it never came to: ${what}`);
}

/** Boundary files that a server can show. */
const BOUNDARIES = fileURLToPath(new URL('../../ichido-boundary/tests/it/team/', import.meta.url));

/** A claim lasts and a retry waits as short as a test needs. The circuit stays closed: it would hide what a test wants to see. */
const config = (store, receiver, more) => `
[store]
url = "${store}"
[worker]
name = "web-1"
idle_sleep = "250ms"
[queue_defaults]
max_retries = 2
${more}
[destinations.broker]
kind = "http"
url = "${receiver}/orders"
guarantee = "keyed"
keeps_keys_for = "365d"
receipt_pointer = "/order_id"
circuit = { failures = 1000000 }
[destinations.bank]
kind = "http"
url = "${receiver}/payments"
guarantee = "none"
receipt_pointer = "/order_id"
settle_grace = "1s"
circuit = { failures = 1000000 }
[queues.orders]
destination = "broker"
outbound_key = "own"
retry = { waits = ["100ms"], jitter = "none" }
parallelism = 16
[queues.payments]
destination = "bank"
requeue = true
retry = { waits = ["100ms"], jitter = "none" }
`;

/** Runs a test on one database, and in the soak on both. */
export const on = (kind, work, wanted = {}) => async (t) => {
  for (const one of IS_WHOLE ? ['sqlite', 'postgres'] : [kind]) await t.test(one, async (t) => work(await Stage.start(t, one, wanted), t));
};

export class Stage {
  /**
   * @param {'sqlite' | 'postgres' | 'stoppable'} kind the server's database; `stoppable` is a PostgreSQL server of the test's own
   * @param {string[]} roles create a token of each of these roles, so everybody has to sign in
   * @param {string} more settings that follow the defaults of queues
   */
  static async start(t, kind, { roles = [], more = '' } = {}) {
    const stage = new Stage();
    stage.kind = kind;
    stage.folder = await mkdtemp(join(tmpdir(), 'ichido-dashboard-'));
    stage.contexts = [];
    stage.faults = [];
    stage.tokens = {};
    stage.port = 0;
    stage.receiver = new Receiver();
    t.after(() => stage.end());
    await stage.receiver.listen();
    await cp(BOUNDARIES, join(stage.folder, 'boundaries'), { recursive: true });
    stage.store = await stage.#store(kind);
    await writeFile(join(stage.folder, 'ichido.toml'), config(stage.store, stage.receiver.url, more.replaceAll('RECEIVER', stage.receiver.url)));
    for (const role of roles) {
      const { found } = await started(built('ichido'), ['token', 'create', role, '--role', role], stage.folder, /^(ichido_\S+)/);
      stage.tokens[role] = found;
    }
    await stage.startServer();
    return stage;
  }

  async #store(kind) {
    if (kind === 'sqlite') return 'sqlite:ichido.db';
    if (kind === 'postgres') return freshDatabase();
    this.postgres = dialogue('examples/own_postgres', this.folder);
    return this.postgres.answer();
  }

  /** Starts the server, always on the same port, because a browser knows a page by it. */
  async startServer() {
    const { child, found } = await started(built('ichido'), ['serve', '--listen', `127.0.0.1:${this.port}`], this.folder, /serving on http:\/\/127\.0\.0\.1:(\d+)/);
    this.server = child;
    this.port = Number(found);
    // `localhost` is a secure context, like https.
    this.url = `http://localhost:${this.port}`;
  }

  /** Starts an adapter on the same store: a proxy that deduplicates requests. Returns its URL. */
  async startAdapter(operation) {
    const args = ['proxy', '--role', 'adapter', '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0', '--identity', 'single:shop'];
    const { child, found } = await started(built('ichido'), [...args, '--upstream', this.receiver.url, '--store', this.store, '--operation', operation], this.folder, /listening on (\S+) for/);
    this.adapter = child;
    return found;
  }

  killServer() {
    return kill(this.server);
  }

  stopDatabase() {
    return this.postgres.ask('stop');
  }

  startDatabase() {
    return this.postgres.ask('start');
  }

  /** A new profile of the browser. */
  async context(options = {}) {
    const context = await newContext({ locale: 'en-US', ...options });
    this.contexts.push(context);
    return context;
  }

  /** Opens a page in a tab. */
  async tab(path, context) {
    const page = await (context ?? (await this.context())).newPage();
    page.on('pageerror', (error) => this.faults.push(error));
    page.on('console', (line) => /Content Security Policy/.test(line.text()) && this.faults.push(new Error(line.text())));
    await page.addInitScript(observeShifts);
    if (path !== null) await page.goto(this.url + path);
    return page;
  }

  /** Signs in with the token of a role, and returns the tab. */
  async signedIn(role, path = '/', context = undefined) {
    const page = await this.tab(path, context);
    await page.fill('#token', this.tokens[role]);
    await page.click('form.stack button');
    await page.waitForURL(this.url + path);
    return page;
  }

  /** Calls the API as an administrator. */
  async api(method, path, body, headers = {}) {
    const token = this.tokens.admin && { authorization: `Bearer ${this.tokens.admin}` };
    const answer = await fetch(`http://127.0.0.1:${this.port}${path}`, { method, body, headers: { ...token, ...headers } });
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
    return answer.headers.get('content-type') === 'application/json' ? JSON.parse(text) : text;
  }

  /** Sends a message, and returns its id. */
  async send(queue, key, body) {
    const headers = { 'idempotency-key': key, 'content-type': 'application/json' };
    return (await this.api('POST', `/v1/queues/${queue}/messages`, JSON.stringify(body), headers)).id;
  }

  /** Sends many messages. Each line has a key and a body. */
  async sendAll(queue, lines) {
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    return this.api('POST', `/v1/queues/${queue}/messages:batch`, text, { 'content-type': 'application/x-ndjson' });
  }

  async counts(queue) {
    const { queues } = await this.api('GET', '/v1/queues');
    return queues.find(({ name }) => name === queue)?.counts ?? {};
  }

  /** Waits until one failure group of a queue has so many messages. The worker folds failures into groups every few seconds. */
  untilGrouped(queue, wanted) {
    return until('the failures are grouped', async () => {
      const { failure_groups: groups } = await this.api('GET', '/v1/failure-groups');
      return groups.find((group) => group.queue === queue && group.count === wanted);
    });
  }

  /** Waits until a queue has these counts. */
  untilCounts(queue, wanted) {
    return until(`${queue} has ${JSON.stringify(wanted)}`, async () => {
      const counts = await this.counts(queue);
      return Object.entries(wanted).every(([state, count]) => counts[state] === count);
    });
  }

  async end() {
    for (const context of this.contexts) await context.close().catch(() => {});
    for (const child of [this.server, this.adapter, this.postgres?.child].filter(Boolean)) await kill(child);
    this.receiver.close();
    await rm(this.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
    assert.deepEqual(this.faults, []);
  }
}

/** Runs in each page before its own script: records the layout shifts that the browser measures. */
function observeShifts() {
  window.layoutShifts = [];
  const shown = (node) => (node?.nodeType === 1 ? `${node.tagName.toLowerCase()}#${node.id}.${node.className}` : String(node?.nodeName));
  const at = ({ x, y, width, height }) => [x, y, width, height].map(Math.round).join(' ');
  const moved = ({ node, previousRect, currentRect }) => `${shown(node)}: ${at(previousRect)} to ${at(currentRect)}`;
  const record = (entries) => entries.forEach(({ value, sources }) => window.layoutShifts.push({ value, sources: sources.map(moved) }));
  const observer = new PerformanceObserver((list) => record(list.getEntries()));
  observer.observe({ type: 'layout-shift', buffered: true });
  window.takeLayoutShifts = () => {
    record(observer.takeRecords());
    return window.layoutShifts;
  };
}

/** The layout shifts of a page so far, after what it has done is painted. */
export async function layoutShifts(page) {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return page.evaluate(() => window.takeLayoutShifts());
}

/** What the page says about its connection: nothing while all is well. */
export const notice = (page) =>
  page.evaluate(() => {
    const bar = document.querySelector('#live-state, #notice');
    return bar.hidden || ['live', 'off'].includes(bar.dataset.state) ? '' : bar.textContent.trim();
  });

/** Shows the changes that the page holds back because they would move what a person looks at. */
async function showHeld(page) {
  const button = page.locator('#live-state button');
  if ((await button.count()) > 0) await button.click({ timeout: 1_000 }).catch(() => {});
}

/** Waits until a part of a page has a text. It does not reload. */
export const untilText = (page, selector, pattern, patience) =>
  until(`${selector} matches ${pattern}`, async () => {
    await showHeld(page);
    const text = await page.textContent(selector, { timeout: 1_000 }).catch(() => null);
    return text !== null && pattern.test(text) ? text.trim() : null;
  }, patience);

/** Marks a page, and returns a function that asserts that it was not loaded again. */
export async function watchReload(page) {
  await page.evaluate(() => (window.isSame = true));
  return async () => assert.equal(await page.evaluate(() => window.isSame), true, 'the page was loaded again');
}
