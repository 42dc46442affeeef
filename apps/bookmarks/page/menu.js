// @ts-check
// The menu: save from anywhere, import and export, keyboard shortcuts, signing out.

import { importFile, MAX_IMPORT_BYTES, me, Refused } from './api.js';
import { make } from './view.js';
import { words } from './words.js';

/** @template {HTMLElement} T @param {string} id */
const at = (id) => /** @type {T} */ (document.getElementById(id));

/** Whose phone it is decides how pages are shared to us. */
function platform() {
  const isApple = /iPhone|iPad|iPod/.test(navigator.userAgent) || (/Macintosh/.test(navigator.userAgent) && navigator.maxTouchPoints > 1);
  return isApple ? 'iphone' : 'android';
}

/** Lists the shortcuts. */
export function showKeys() {
  at('shortcuts').replaceChildren(
    ...Object.entries(words().keysOf).map(([keys, does]) => {
      const row = make('div', '');
      const term = make('dt', '');
      term.append(...keys.split(' ').map((key) => Object.assign(make('kbd', ''), { textContent: key })));
      row.append(term, Object.assign(make('dd', ''), { textContent: does }));
      return row;
    }),
  );
}

/** @param {HTMLDialogElement} dialog */
function open(dialog) {
  if (!dialog.open) dialog.showModal();
}

export function openHelp() {
  open(/** @type {HTMLDialogElement} */ (at('help')));
}

/** @param {{ imported: () => void, isOver: (error: unknown) => boolean }} calls */
export function wireMenu({ imported, isOver }) {
  document.documentElement.setAttribute('data-platform', platform());
  const menu = /** @type {HTMLDialogElement} */ (at('menu'));
  at('open-menu').addEventListener('click', () => open(menu));
  for (const dialog of document.querySelectorAll('dialog')) {
    dialog.querySelector('.close')?.addEventListener('click', () => dialog.close());
    // A press beside the dialog closes it.
    dialog.addEventListener('click', (event) => event.target === dialog && dialog.close());
  }
  for (const input of /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll('input[type=file]'))) {
    input.addEventListener('change', async () => {
      const file = input.files?.[0];
      if (file) {
        open(menu);
        await run(file, imported, isOver);
      }
      input.value = '';
    });
  }
  for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (menu.querySelectorAll('a[download]'))) {
    link.addEventListener('click', (event) => void beforeExport(link, event, isOver));
  }
}

/** Shows how an import or an export ended. @param {string} text @param {{ isError?: boolean }} [how] */
function report(text, { isError = false } = {}) {
  const result = at('import-result');
  result.textContent = text;
  result.classList.toggle('bad', isError);
}

/** The export that may begin, because the server is there. @type {HTMLAnchorElement | null} */
let allowed = null;

/**
 * Asks the server whether it is there, because a browser shows a download that failed as a broken file.
 * @param {HTMLAnchorElement} link @param {Event} event @param {(error: unknown) => boolean} isOver
 */
async function beforeExport(link, event, isOver) {
  if (allowed === link) return void (allowed = null);
  event.preventDefault();
  report('');
  try {
    await me();
    allowed = link;
    link.click();
  } catch (error) {
    if (!isOver(error)) report(words().exportFailed, { isError: true });
  }
}

let isRunning = false;

/** @param {File} file @param {() => void} imported @param {(error: unknown) => boolean} isOver */
async function run(file, imported, isOver) {
  if (isRunning) return;
  if (MAX_IMPORT_BYTES < file.size) return report(words().importTooLarge, { isError: true });
  isRunning = true;
  report(words().importing);
  try {
    const { found, created, existing, skipped } = await importFile(file);
    report(words().imported(found, created, existing, skipped));
    imported();
  } catch (error) {
    const isRefused = error instanceof Refused && error.code === 'body_invalid';
    if (!isOver(error)) report(isRefused ? words().importRefused : words().importStopped, { isError: true });
  }
  isRunning = false;
}
