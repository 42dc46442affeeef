// A whole stage for one test: a broker, the real server, the front, and a real browser with a profile of its own.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { chromium } from 'playwright-core';

import { Front } from './front.js';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const ICHIDO = process.env.ICHIDO_BIN ?? join(process.env.CARGO_TARGET_DIR ?? join(ROOT, 'target'), 'debug', 'ichido');
const CHROMIUM = process.env.CHROMIUM_BIN ?? 'chromium';
/** How often a condition is looked at, and how long at most: far beyond what anything takes, for a machine that is busy. */
const LOOK_EVERY_MS = 20;
const PATIENCE_MS = 60_000;

/** Nothing that a test does not need: it starts in half the time, and calls nobody. */
const LEAN = [
  '--no-first-run',
  '--no-default-browser-check',
  '--disable-background-networking',
  '--disable-component-extensions-with-background-pages',
  '--disable-component-update',
  '--disable-default-apps',
  '--disable-dev-shm-usage',
  '--disable-extensions',
  '--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,WebUIOmniboxPopup,WebUIOmniboxAimPopup',
  '--disable-gpu',
  '--disable-sync',
  '--mute-audio',
  '--password-store=basic',
];

/** Looks until `condition` gives something. */
export async function until(what, condition) {
  for (let looks = 0; looks < PATIENCE_MS / LOOK_EVERY_MS; looks++) {
    const found = await condition();
    if (found) return found;
    await sleep(LOOK_EVERY_MS);
  }
  throw new Error(`it never came to: ${what}`);
}

/** What still runs. It has process groups of its own, which outlive us unless we end them. */
const running = new Set();
process.on('exit', () => {
  for (const child of running) process.kill(-child.pid, 'SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

/** Starts a program and waits for a line; the test's end is the program's. */
async function started(program, args, folder, line, stream = 'stdout') {
  const child = spawn(program, args, { cwd: folder, detached: true, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, HOME: folder } });
  running.add(child);
  child.once('exit', () => running.delete(child));
  const said = [];
  const other = stream === 'stdout' ? 'stderr' : 'stdout';
  child[other].on('data', (data) => said.push(data.toString()));
  const found = await new Promise((resolve, reject) => {
    child.on('error', (error) => reject(new Error(`${program}: ${error.message}`)));
    child.on('exit', (code) => reject(new Error(`${program} ended with ${code}: ${said.join('')}`)));
    createInterface({ input: child[stream] }).on('line', (text) => {
      said.push(text);
      const match = line.exec(text);
      if (match) resolve(match[1]);
    });
  });
  return { child, found };
}

/** Ends a program and all that it started, as a power cut would. */
async function kill(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const over = new Promise((resolve) => child.once('exit', resolve));
  process.kill(-child.pid, 'SIGKILL');
  await over;
}

export class Stage {
  static async start(t, wanted = {}) {
    assert.ok(existsSync(ICHIDO), `${ICHIDO} is not there; build it by \`cargo build -p ichido-cli\``);
    const stage = new Stage();
    stage.folder = await mkdtemp(join(tmpdir(), 'ichido-js-'));
    stage.wanted = wanted;
    stage.front = new Front();
    t.after(() => stage.end());
    await stage.front.listen();
    await Promise.all([stage.startServer(), stage.startBrowser()]);
    return stage;
  }

  async startServer() {
    if (!this.paper) {
      this.paper = await started(ICHIDO, ['paper', '--listen', '127.0.0.1:0'], this.folder, /listening on (http:\S+)/);
      await writeFile(
        join(this.folder, 'ichido.toml'),
        `[store]\nurl = "sqlite:ichido.db"\n[destinations.broker]\nkind = "http"\nurl = "${this.paper.found}/orders"\nhonours_key = true\nkeeps_keys_for = "24h"\n[queues.orders]\ndestination = "broker"\noutbound_key = "own"\n`,
      );
    }
    this.server = await started(ICHIDO, ['serve', '--listen', '127.0.0.1:0'], this.folder, /serving on http:\/\/127\.0\.0\.1:(\d+)/);
    this.front.upstream = Number(this.server.found);
  }

  killServer() {
    return kill(this.server.child);
  }

  async startBrowser() {
    const profile = join(this.folder, 'profile');
    await mkdir(profile, { recursive: true });
    const args = ['--headless=new', '--remote-debugging-port=0', `--user-data-dir=${profile}`, ...LEAN, 'about:blank'];
    if (process.getuid?.() === 0) args.unshift('--no-sandbox');
    this.program = await started(CHROMIUM, args, this.folder, /DevTools listening on (ws:\S+)/, 'stderr');
    this.browser = await chromium.connectOverCDP(this.program.found);
    this.context = this.browser.contexts()[0];
  }

  /** All its processes at once, in the middle of whatever they do. */
  killBrowser() {
    return kill(this.program.child);
  }

  /** A tab with the page, and its queue open. */
  async tab() {
    const page = await this.context.newPage();
    page.on('pageerror', (error) => this.front.faults.push(error));
    await page.addInitScript((wanted) => location.protocol === 'http:' && localStorage.setItem('wanted', wanted), JSON.stringify(this.wanted));
    await page.goto(this.front.url);
    await ready(page);
    return page;
  }

  /** Presses the button. */
  press(page, body, draft) {
    return page.evaluate(([body, draft]) => window.press(body, draft), [body, draft]);
  }

  /** Until an entry is as wanted. */
  entry(page, id, what, isSo) {
    return until(`entry ${id} is ${what}`, async () => {
      const entry = await page.evaluate((id) => window.queue.get(id), id);
      return entry && isSo(entry) ? entry : null;
    });
  }

  done(page, id) {
    return this.entry(page, id, 'done', ({ state }) => state === 'done');
  }

  /** What happened at the far side: each effect, and each call for it. Waits until the server has nothing left to send. */
  async effects() {
    const queue = await until('the server sent all it has', async () => {
      const { queues } = await this.#json(`http://127.0.0.1:${this.front.upstream}/v1/queues`);
      const { queued, sending, failed, sent } = queues.find(({ name }) => name === 'orders').counts;
      return queued + sending + failed === 0 ? { sent } : null;
    });
    const { effects, calls } = await this.#json(`${this.paper.found}/paper/effects`);
    return { messages: queue.sent, effects, calls };
  }

  async messages() {
    const { messages } = await this.#json(`http://127.0.0.1:${this.front.upstream}/v1/messages?queue=orders`);
    return messages;
  }

  message(href) {
    return this.#json(`http://127.0.0.1:${this.front.upstream}${href}`);
  }

  /** The one claim of every test: so many actions, so many effects. */
  async assertOnce(count = 1) {
    assert.deepEqual(await this.effects(), { messages: count, effects: count, calls: count });
  }

  async #json(url) {
    return (await fetch(url)).json();
  }

  async end() {
    this.front.close();
    await this.browser?.close().catch(() => {});
    const programs = [this.program, this.server, this.paper].filter(Boolean);
    await Promise.all(programs.map(({ child }) => kill(child)));
    await rm(this.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
    assert.deepEqual(this.front.faults, []);
  }
}

/** Until the page's module has run. */
export async function ready(page) {
  await page.waitForFunction(() => window.isReady === true);
}
