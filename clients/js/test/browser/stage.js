// The environment of one test: a broker, the real server, the front, and a real browser with its own profile.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Front } from './front.js';
import { built, kill, openBrowser, started, until } from './program.js';

export { until };

export class Stage {
  static async start(t, wanted = {}, isWholeBrowser = false) {
    const stage = new Stage();
    stage.isWholeBrowser = isWholeBrowser;
    stage.folder = await mkdtemp(join(tmpdir(), 'ichido-js-'));
    stage.wanted = wanted;
    stage.front = new Front();
    t.after(() => stage.end());
    await stage.front.listen();
    await Promise.all([stage.startServer(), stage.startBrowser()]);
    return stage;
  }

  async startServer() {
    if (!this.mock) {
      this.mock = await started(built('ichido'), ['mock-broker', '--listen', '127.0.0.1:0'], this.folder, /listening on (http:\S+)/);
      await writeFile(
        join(this.folder, 'ichido.toml'),
        `[store]\nurl = "sqlite:ichido.db"\n[destinations.broker]\nkind = "http"\nurl = "${this.mock.found}/orders"\nguarantee = "keyed"\nkeeps_keys_for = "24h"\n[queues.orders]\ndestination = "broker"\noutbound_key = "own"\n`,
      );
    }
    this.server = await started(built('ichido'), ['serve', '--listen', '127.0.0.1:0'], this.folder, /serving on http:\/\/127\.0\.0\.1:(\d+)/);
    this.front.upstream = Number(this.server.found);
  }

  killServer() {
    return kill(this.server.child);
  }

  async startBrowser() {
    this.program = await openBrowser(this.folder, this.isWholeBrowser);
    ({ browser: this.browser, context: this.context } = this.program);
  }

  /** Kills all browser processes at once. */
  killBrowser() {
    return kill(this.program.child);
  }

  /** Opens a tab with the page and its queue. */
  async tab() {
    const page = await this.context.newPage();
    page.on('pageerror', (error) => this.front.faults.push(error));
    await page.addInitScript((wanted) => location.protocol === 'http:' && localStorage.setItem('wanted', wanted), JSON.stringify(this.wanted));
    await page.goto(this.front.url);
    await ready(page);
    return page;
  }

  /** Clicks the button. */
  press(page, body, draft) {
    return page.evaluate(([body, draft]) => window.press(body, draft), [body, draft]);
  }

  /** Waits until an entry is as wanted. */
  entry(page, id, what, isSo) {
    return until(`entry ${id} is ${what}`, async () => {
      const entry = await page.evaluate((id) => window.queue.get(id), id);
      return entry && isSo(entry) ? entry : null;
    });
  }

  done(page, id) {
    return this.entry(page, id, 'done', ({ state }) => state === 'done');
  }

  /** Returns the broker's effects and calls, after the server has nothing left to send. */
  async effects() {
    const queue = await until('the server sent all it has', async () => {
      const { queues } = await this.#json(`http://127.0.0.1:${this.front.upstream}/v1/queues`);
      const { queued, sending, failed, sent } = queues.find(({ name }) => name === 'orders').counts;
      return queued + sending + failed === 0 ? { sent } : null;
    });
    const { effects, calls } = await this.#json(`${this.mock.found}/mock/effects`);
    return { messages: queue.sent, effects, calls };
  }

  async messages() {
    const { messages } = await this.#json(`http://127.0.0.1:${this.front.upstream}/v1/messages?queue=orders`);
    return messages;
  }

  message(href) {
    return this.#json(`http://127.0.0.1:${this.front.upstream}${href}`);
  }

  /** Asserts the claim of every test: each action has one effect. */
  async assertOnce(count = 1) {
    assert.deepEqual(await this.effects(), { messages: count, effects: count, calls: count });
  }

  async #json(url) {
    return (await fetch(url)).json();
  }

  async end() {
    this.front.close();
    await this.browser?.close().catch(() => {});
    const programs = [this.program, this.server, this.mock].filter(Boolean);
    await Promise.all(programs.map(({ child }) => kill(child)));
    await rm(this.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
    assert.deepEqual(this.front.faults, []);
  }
}

/** Waits until the page's module has run. */
export async function ready(page) {
  await page.waitForFunction(() => window.isReady === true);
}
