// What all tests of a file share, because starting it takes longer than a test: a browser, and PostgreSQL with a database for each.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { after } from 'node:test';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { axe, built, kill, launched, openBrowser, PATIENCE_MS } from './program.js';

const folder = await mkdtemp(join(tmpdir(), 'ichido-shared-'));
let browser = null;
let postgres = null;
after(async () => {
  const opened = await browser?.catch(() => null);
  await opened?.browser.close().catch(() => {});
  for (const child of [opened?.child, postgres?.child].filter(Boolean)) await kill(child);
  await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
});

/** A program that prints one line for each line that it reads. */
export function dialogue(name, where) {
  const child = launched(built(name), [], where, { input: 'pipe' });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const answer = async () => {
    const { value } = await lines.next();
    assert.ok(value, `${name} ended`);
    return value;
  };
  return { child, answer, ask: (line) => (child.stdin.write(`${line}\n`), answer()) };
}

/** The URL of a new PostgreSQL database. */
export async function freshDatabase() {
  postgres ??= dialogue('examples/fresh_database', folder);
  return postgres.ask('');
}

/** A new profile in the shared browser: cookies and storage of its own. */
export async function newContext(options) {
  browser ??= openBrowser(folder);
  const context = await (await browser).browser.newContext(options);
  context.setDefaultTimeout(PATIENCE_MS);
  return context;
}

/** The impacts that fail a test. */
const GRAVE = ['serious', 'critical'];

/** Asserts that axe-core finds nothing serious on a page. */
export async function assertAccessible(page, what) {
  const found = await page.evaluate(`${await axe()}; axe.run(document, { resultTypes: ['violations'], preload: false })`);
  const grave = found.violations.filter(({ impact }) => GRAVE.includes(impact));
  assert.deepEqual(grave.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]), [], what);
}
