// @ts-check
// Signing in: the token is typed, or is in the fragment of the link that the server printed, which no server and no log sees. A link only
// fills the field: signing in takes a deliberate press, so no foreign page can sign a person in as somebody else by opening it.

import { me, signIn, SignedOut } from './api.js';
import { AFTER, forget } from './person.js';
import { heedPresses } from './press.js';
import { languageButton, speak, words } from './words.js';

/** @template {HTMLElement} T @param {string} id */
const at = (id) => /** @type {T} */ (document.getElementById(id));
const form = /** @type {HTMLFormElement} */ (at('sign-in'));
const field = /** @type {HTMLInputElement} */ (at('token'));
const hint = at('hint');
const button = /** @type {HTMLButtonElement} */ (form.querySelector('button'));

/** The name of the person who is already signed in. @type {string | null} */
let here = null;

function sayWho() {
  at('here').hidden = here === null;
  at('who').textContent = here === null ? '' : words().signedInAs(here);
}

/** @param {string} token */
async function enter(token) {
  button.disabled = true;
  hint.textContent = '';
  try {
    const came = await signIn(token);
    if (came === 'in') {
      // Open the page that the person asked for, once, and only on this site.
      const after = sessionStorage.getItem(AFTER) ?? '/';
      sessionStorage.removeItem(AFTER);
      return location.replace(after);
    }
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
heedPresses(button);
languageButton(at('language'), sayWho);
speak(document);

function takeGiven() {
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (!given) return;
  // Remove the token from the address bar and the history first.
  history.replaceState(null, '', '/sign-in');
  field.value = given;
}

takeGiven();
// A link opened on this page only changes the fragment.
addEventListener('hashchange', takeGiven);
me().then(
  (person) => {
    here = person.name;
    sayWho();
  },
  // The session may have ended without a sign-out.
  async (error) => {
    if (error instanceof SignedOut) await forget();
  },
);
