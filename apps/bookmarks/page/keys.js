// @ts-check
// Keyboard shortcuts.

import { unfold } from './view.js';

/** @param {{ list: HTMLElement, field: HTMLInputElement, search: HTMLInputElement, undo: () => void, help: () => void }} what */
export function listenToKeys({ list, field, search, undo, help }) {
  document.addEventListener('keydown', (event) => {
    const isTyping = event.target instanceof HTMLInputElement;
    if (event.key === 'Escape' && isTyping) return event.target.blur();
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
    const rows = /** @type {HTMLElement[]} */ ([...list.children]);
    const here = rows.findIndex((row) => row.contains(document.activeElement));
    const row = rows[here];
    const go = (/** @type {number} */ place) => {
      const next = rows[Math.max(0, Math.min(rows.length - 1, place))];
      next?.focus({ preventScroll: true });
      next?.scrollIntoView({ block: 'nearest' });
    };
    const press = (/** @type {string} */ what) => /** @type {HTMLElement | null} */ (row?.querySelector(what) ?? null)?.click();
    /** @type {Record<string, () => void>} */
    const does = {
      '/': () => search.focus(),
      n: () => field.focus(),
      j: () => go(here + 1),
      k: () => go(here - 1),
      o: () => press('.link'),
      e: () => press('[data-step="edit"]'),
      r: () => press('[data-step="retry"]'),
      d: () => press('[data-step="remove"]'),
      u: undo,
      '?': help,
    };
    // On a link or a button, Enter keeps its usual meaning.
    if (row && document.activeElement === row) does.Enter = () => unfold(row);
    const act = does[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}
