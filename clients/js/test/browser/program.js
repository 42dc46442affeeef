// Programs that a test starts: ours, and a real browser. They end with the test.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { chromium } from 'playwright-core';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const BUILT = join(process.env.CARGO_TARGET_DIR ?? join(ROOT, 'target'), 'debug');
const CHROMIUM = process.env.CHROMIUM_BIN ?? 'chromium';
/** The same browser without its windows, where it is installed: it takes a little more than half of the processor's time. */
const SHELL = process.env.CHROMIUM_BIN ?? (spawnSync('chromium-headless-shell', ['--version']).status === 0 ? 'chromium-headless-shell' : CHROMIUM);
/** Disables everything that a test does not need: the browser starts twice as fast and makes no calls of its own. */
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
  // Without a screen, a browser has no mouse: here it hovers, and its pointer is fine. A context with `hasTouch` has a finger instead.
  '--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4',
];
/** How often a condition is checked, and for how long: generous, for a busy machine. */
const LOOK_EVERY_MS = 50;
export const PATIENCE_MS = 60_000;

/** Waits until `condition` returns something. */
export async function until(what, condition, patience = PATIENCE_MS) {
  for (let looks = 0; looks < patience / LOOK_EVERY_MS; looks++) {
    const found = await condition();
    if (found) return found;
    await sleep(LOOK_EVERY_MS);
  }
  throw new Error(`it never came to: ${what}`);
}

/** A program of this repository. */
export function built(name) {
  const path = join(BUILT, name);
  assert.ok(existsSync(path), `${path} is not there; build it by \`cargo build --workspace --bins --examples\``);
  return path;
}

/** The running programs. Their process groups outlive us unless we end them. */
const running = new Set();
process.on('exit', () => {
  for (const child of running) process.kill(-child.pid, 'SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

/** Starts a program in its own process group. */
export function launched(program, args, folder, { input = 'ignore', env = {} } = {}) {
  const child = spawn(program, args, { cwd: folder, detached: true, stdio: [input, 'pipe', 'pipe'], env: { ...process.env, HOME: folder, ...env } });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

/** Starts a program and waits for a line. Returns the match, and all output before it. */
export async function started(program, args, folder, line, { stream = 'stdout', env = {} } = {}) {
  const child = launched(program, args, folder, { env });
  const said = [];
  child[stream === 'stdout' ? 'stderr' : 'stdout'].on('data', (data) => said.push(data.toString()));
  const found = await new Promise((resolve, reject) => {
    child.on('error', (error) => reject(new Error(`${program}: ${error.message}`)));
    // Its last output may arrive after its end.
    child.on('close', (code) => reject(new Error(`${program} ended with ${code}: ${said.join('\n')}`)));
    createInterface({ input: child[stream] }).on('line', (text) => {
      said.push(text);
      const match = line.exec(text);
      if (match) resolve(match[1]);
    });
  });
  return { child, found, said };
}

/** Kills a program and everything it started, like a power cut. */
export async function kill(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const over = new Promise((resolve) => child.once('exit', resolve));
  process.kill(-child.pid, 'SIGKILL');
  await over;
}

/**
 * Opens a real browser with its profile in `folder`, which keeps its data between runs.
 * @param {boolean} isWhole with Background Sync, which the browser without windows does not have
 */
export async function openBrowser(folder, isWhole = false) {
  const profile = join(folder, 'profile');
  await mkdir(profile, { recursive: true });
  const args = ['--headless=new', '--remote-debugging-port=0', `--user-data-dir=${profile}`, ...LEAN, ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []), 'about:blank'];
  const { child, found } = await started(isWhole ? CHROMIUM : SHELL, args, folder, /DevTools listening on (ws:\S+)/, { stream: 'stderr' });
  const browser = await chromium.connectOverCDP(found, { timeout: PATIENCE_MS });
  const [context] = browser.contexts();
  context.setDefaultTimeout(PATIENCE_MS);
  return { child, browser, context };
}

/** axe-core, to be evaluated in a page. */
export const axe = () => readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
