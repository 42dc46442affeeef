// Draws the PNG icons from icon.svg.
//   cd clients/js && node ../../apps/bookmarks/browser/icons.js
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { kill, openBrowser } from '../../../clients/js/test/browser/program.js';

const PAGE = fileURLToPath(new URL('../page/', import.meta.url));
// iOS and launchers cut the corners themselves; a transparent corner would become black.
const ICONS = [
  { name: 'icon-180', size: 180, isSquare: true },
  { name: 'icon-192', size: 192, isSquare: false },
  { name: 'icon-512', size: 512, isSquare: false },
  { name: 'icon-512-maskable', size: 512, isSquare: true },
];

const svg = await readFile(`${PAGE}icon.svg`, 'utf8');
const folder = await mkdtemp(join(tmpdir(), 'bookmarks-icons-'));
const { child, browser, context } = await openBrowser(folder);
const page = await context.newPage();
for (const { name, size, isSquare } of ICONS) {
  await page.setViewportSize({ width: size, height: size });
  const drawn = (isSquare ? svg.replace(' rx="14"', '') : svg).replace('width="64" height="64" viewBox', 'viewBox').replace(/width="64" height="64">/, `width="${size}" height="${size}">`);
  await page.setContent(`<style>body { margin: 0 } svg { display: block }</style>${drawn}`);
  await page.screenshot({ path: `${PAGE}${name}.png`, omitBackground: true });
}
await browser.close();
await kill(child);
await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
