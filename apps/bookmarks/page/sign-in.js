// @ts-check
// Signing in: the token is typed, or comes in the fragment of the link that the server printed, which no server and no log sees.

import { signIn } from './api.js';
import { languageButton, speak, words } from './words.js';

const form = /** @type {HTMLFormElement} */ (document.getElementById('sign-in'));
const field = /** @type {HTMLInputElement} */ (document.getElementById('token'));
const hint = /** @type {HTMLElement} */ (document.getElementById('hint'));
const button = /** @type {HTMLButtonElement} */ (form.querySelector('button'));

/** Where the person was going when it turned out that nobody is signed in; a path of this site. */
const AFTER = 'after-sign-in';

/** @param {string} token */
async function enter(token) {
  button.disabled = true;
  hint.textContent = '';
  try {
    const came = await signIn(token);
    // To where the person was going, and to nowhere else than this site.
    if (came === 'in') return location.replace(sessionStorage.getItem(AFTER) ?? '/');
    hint.textContent = came === 'wrong' ? words().tokenWrong : words().tooOften;
  } catch {
    hint.textContent = words().unreachable;
  }
  button.disabled = false;
  field.focus();
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  void enter(field.value.trim());
});
languageButton(/** @type {HTMLElement} */ (document.getElementById('language')), () => {});
speak(document);

function takeGiven() {
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (!given) return;
  // Out of the address bar and the history, before anything else.
  history.replaceState(null, '', '/sign-in');
  void enter(given);
}

takeGiven();
// A link that is opened where this page already is changes nothing but the fragment.
addEventListener('hashchange', takeGiven);
