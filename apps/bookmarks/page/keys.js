// @ts-check
// Keyboard shortcuts.

/** @param {HTMLElement} list @param {HTMLInputElement} field @param {HTMLInputElement} search */
export function listenToKeys(list, field, search) {
  document.addEventListener('keydown', (event) => {
    const isTyping = event.target instanceof HTMLInputElement;
    if (event.key === 'Escape' && isTyping) return event.target.blur();
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const rows = /** @type {HTMLElement[]} */ ([...list.children]);
    const here = rows.findIndex((row) => row.contains(document.activeElement));
    const go = (/** @type {number} */ place) => rows[Math.max(0, Math.min(rows.length - 1, place))]?.focus();
    const press = (/** @type {string} */ step) => /** @type {HTMLElement | null} */ (rows[here]?.querySelector(`[data-step="${step}"]`) ?? null)?.click();
    /** @type {Record<string, () => void>} */
    const does = {
      '/': () => search.focus(),
      n: () => field.focus(),
      j: () => go(here + 1),
      k: () => go(here - 1),
      r: () => press('retry'),
      d: () => press('remove'),
    };
    // On a link or a button, Enter keeps its usual meaning.
    if (rows[here] && document.activeElement === rows[here]) does.Enter = () => rows[here]?.toggleAttribute('data-open');
    const act = does[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}
