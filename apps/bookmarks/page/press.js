// @ts-check
// A press that a person means. A foreign page can have somebody hold a key, or click twice, and bring one of ours under it meanwhile: so a
// button counts when its page was seen for a moment, and a key that is merely held presses nothing.

/** How long a page is seen before its button can be pressed. */
const SEEN_MS = 500;

/** Lets a button be pressed when the page was seen long enough; anew when it was away. @param {HTMLButtonElement} button @param {() => void} [ready] */
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
