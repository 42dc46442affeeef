// @ts-check
// Accepts deliberate presses only. A foreign page can make a person hold a key or double-click, and show one of our pages meanwhile. So a
// button is enabled after its page was visible for a moment, and a held key presses nothing.

/** How long a page must be visible before its button is enabled. */
const SEEN_MS = 500;

/** Enables a button when the page was visible long enough, and again after it was hidden. @param {HTMLButtonElement} button @param {() => void} [ready] */
export function heedPresses(button, ready = () => {}) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const begin = () => {
    clearTimeout(timer);
    button.disabled = true;
    if (document.visibilityState !== 'visible') return;
    timer = setTimeout(() => {
      button.disabled = false;
      ready();
    }, SEEN_MS);
  };
  document.addEventListener('visibilitychange', begin);
  document.addEventListener('keydown', (event) => event.repeat && (event.key === 'Enter' || event.key === ' ') && event.preventDefault(), { capture: true });
  begin();
  return () => {
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', begin);
  };
}
