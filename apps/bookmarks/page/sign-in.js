// @ts-check
// Signing in: the token is typed, or comes in the fragment of the link that the server printed, which no server and no log sees. A link only
// fills the field: signing in takes a press that is meant, so that no foreign page can sign somebody in as somebody else by opening it.

import { me, signIn, SignedOut } from './api.js';
import { forget } from './person.js';
import { heedPresses } from './press.js';
import { languageButton, speak, words } from './words.js';

/** @template {HTMLElement} T @param {string} id */
const at = (id) => /** @type {T} */ (document.getElementById(id));
const form = /** @type {HTMLFormElement} */ (at('sign-in'));
const field = /** @type {HTMLInputElement} */ (at('token'));
const hint = at('hint');
const button = /** @type {HTMLButtonElement} */ (form.querySelector('button'));

/** Where the person was going when it turned out that nobody is signed in; a path of this site. */
const AFTER = 'after-sign-in';

/** Whoever is signed in already. @type {string | null} */
let here = null;

function sayWho() {
  at('who').textContent = here === null ? '' : words().signedInAs(here);
}

/** @param {string} token */
async function enter(token) {
  button.disabled = true;
  hint.textContent = '';
  try {
    const came = await signIn(token);
    if (came === 'in') {
      // To where the person was going, once, and to nowhere else than this site.
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
  // Out of the address bar and the history, before anything else.
  history.replaceState(null, '', '/sign-in');
  field.value = given;
}

takeGiven();
// A link that is opened where this page already is changes nothing but the fragment.
addEventListener('hashchange', takeGiven);
me().then(
  (person) => {
    here = person.name;
    sayWho();
  },
  // Whoever was here may not have signed out, but been shown out.
  async (error) => {
    if (error instanceof SignedOut) await forget();
  },
);
