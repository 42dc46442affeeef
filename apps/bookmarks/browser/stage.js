// Everything one test needs: the product itself, pages for it to read, a scripted model, and a real browser.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { built, kill, openBrowser, started, until } from '../../../clients/js/test/browser/program.js';
import { freshDatabase, newContext } from '../../../clients/js/test/browser/shared.js';

export { until };

/** A page with some text. */
export const story = (title, text = 'A fox jumped over a dog. The dog did not mind. Nobody knows why the fox did it, and nobody asked.') =>
  `<!doctype html><html><head><meta charset="utf-8"><title>${title}</title></head><body><main><p>${text}</p></main></body></html>`;

/** Pages by path: a text, or a function that responds. */
class Site {
  constructor() {
    this.pages = new Map();
    this.server = createServer((request, response) => {
      const page = this.pages.get(request.url);
      if (typeof page === 'function') return page(response);
      response.writeHead(page === undefined ? 404 : 200, { 'content-type': 'text/html; charset=utf-8' }).end(page ?? '');
    });
  }

  async listen() {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    this.url = `http://127.0.0.1:${this.server.address().port}`;
  }

  /** Adds a page and returns its URL. */
  put(path, page) {
    this.pages.set(path, page);
    return this.url + path;
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }
}

export class Stage {
  /** @param {'sqlite' | 'postgres'} kind the product's database */
  static async start(t, kind, { llm = false, ownBrowser = false, serviceWorkers = 'allow', screen = {} } = {}) {
    const stage = new Stage();
    stage.folder = await mkdtemp(join(tmpdir(), 'bookmarks-'));
    stage.programs = [];
    stage.faults = [];
    stage.site = new Site();
    t.after(() => stage.end());
    await stage.site.listen();
    stage.store = kind === 'postgres' ? await freshDatabase() : 'sqlite:bookmarks.db';
    stage.llm = llm ? await stage.#model() : null;
    stage.port = 0;
    await stage.startProduct();
    if (ownBrowser) {
      await stage.startBrowser();
    } else {
      stage.context = await newContext({ serviceWorkers, ...screen });
    }
    return stage;
  }

  async #model() {
    const { child, found } = await started(built('fake-llm'), [], this.folder, /listens on (\S+)/);
    this.programs.push(child);
    return `http://${found}`;
  }

  /** Scripts the model. */
  async script(script) {
    const answer = await fetch(`${this.llm}/_script`, { method: 'POST', body: JSON.stringify(script) });
    assert.ok(answer.ok, await answer.text());
  }

  /** Starts the product, always on the same port, because a browser knows a page by it. */
  async startProduct() {
    const args = ['--listen', `127.0.0.1:${this.port}`, '--store', this.store, '--allow-private-addresses'];
    if (this.llm) args.push('--llm', 'openai:a-model', '--llm-url', `${this.llm}/v1`);
    const { child, found, said } = await started(built('bookmarks'), args, this.folder, /serving on (http:\S+)/, { env: { OPENAI_API_KEY: 'sk-of-a-test' } });
    this.product = child;
    this.port = Number(new URL(found).port);
    // `localhost` is a secure context, like https.
    this.url = `http://localhost:${this.port}`;
    this.token ??= said.map((line) => /#token=(\S+)/.exec(line)?.[1]).find(Boolean);
  }

  killProduct() {
    return kill(this.product);
  }

  /** Starts a separate browser. Its profile survives a restart. */
  async startBrowser() {
    this.own = await openBrowser(this.folder);
    this.context = this.own.context;
  }

  killBrowser() {
    return kill(this.own.child);
  }

  /** Adds a person and returns their token. */
  async addPerson(name) {
    const { found } = await started(built('bookmarks'), ['person', 'add', name, '--store', this.store], this.folder, /^(bm_\S+)/);
    return found;
  }

  /** Replaces a person's token, which ends their sessions. */
  async renew(name) {
    const { found } = await started(built('bookmarks'), ['person', 'renew', name, '--store', this.store], this.folder, /^(bm_\S+)/);
    return found;
  }

  /** Opens a tab and signs in with a token. */
  async signedIn(token = this.token, context = this.context) {
    const page = await this.#tab(context);
    await page.goto(`${this.url}/sign-in#token=${token}`);
    await page.click('#sign-in button');
    await page.waitForURL(`${this.url}/`);
    await ready(page);
    return page;
  }

  /** Opens another tab. */
  async tab(path = '/', context = this.context) {
    const page = await this.#tab(context);
    await page.goto(this.url + path);
    await ready(page);
    return page;
  }

  async #tab(context) {
    const page = await context.newPage();
    page.on('pageerror', (error) => this.faults.push(error));
    page.on('console', (line) => /Content Security Policy/.test(line.text()) && this.faults.push(new Error(line.text())));
    return page;
  }

  /** Returns the bookmarks from the API, without the page. */
  async bookmarks(token = this.token) {
    const answer = await fetch(`http://127.0.0.1:${this.port}/v1/bookmarks?limit=100`, { headers: { authorization: `Bearer ${token}` } });
    return (await answer.json()).bookmarks;
  }

  async end() {
    await this.context?.close().catch(() => {});
    const programs = [this.own?.child, this.product, ...this.programs].filter(Boolean);
    for (const child of programs) await kill(child);
    this.site.close();
    await rm(this.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
    assert.deepEqual(this.faults, []);
  }
}

/** Waits until the page has its data. */
export const ready = (page) => page.waitForSelector('html[data-started]', { state: 'attached' });

/** A bookmark as the server returns it, saved this many minutes ago. */
export const bookmark = (id, minutes, rest = {}) => ({
  id, url: `https://example.com/${id}`, title: `Page ${id}`, summary: null, summary_by: null, status: 'done', error_code: null, error_message: null, can_retry: false,
  job_type: null, attempt: null, max_attempts: null, retry_at: null, tags: [], icon: null, created_at: new Date(Date.now() - minutes * 60_000).toISOString(), ...rest,
});

/** Lets the pages of a context see these bookmarks, a page of 50 at a time, instead of the server's. */
export const show = (context, all) =>
  context.route(/\/v1\/bookmarks\?/, (route) => {
    const query = new URL(route.request().url()).searchParams;
    const from = Number(query.get('before') ?? 0);
    const to = from + Number(query.get('limit') ?? 50);
    return route.fulfill({ json: { bookmarks: all.slice(from, to), next: to < all.length ? String(to) : null, total: query.get('q') ? null : all.length } });
  });

/** Opens the menu and signs out. */
export async function signOut(page) {
  await page.click('#open-menu');
  await page.click('#sign-out');
}

/** Types a URL and presses the button. */
export async function save(page, url) {
  await page.fill('#url', url);
  await page.click('#add button');
}

/** Returns the rows as a person sees them. */
export const rows = (page) =>
  page.$$eval('#list > li', (items) =>
    items.map((item) => ({
      state: item.getAttribute('data-state'),
      title: item.querySelector('.link').textContent,
      text: item.querySelector('.text').textContent,
      steps: [...item.querySelectorAll('[data-step]')].map((button) => button.getAttribute('data-step')),
    })),
  );

/** Waits until the rows are as wanted. */
export function untilRows(page, what, isSo) {
  return until(what, async () => {
    const found = await rows(page);
    return isSo(found) ? found : null;
  });
}
