// @ts-check
// The small window of the bookmarklet, and what is shared to the app: it shows what it would save, and saves on a press. Opening it does
// nothing by itself, so that no other site can save in somebody's name by opening it.

import { me, SignedOut } from './api.js';
import { addressOf, openQueue, save } from './saves.js';
import { speak, words } from './words.js';

/** @template {HTMLElement} T @param {string} id */
const at = (id) => /** @type {T} */ (document.getElementById(id));

const given = new URLSearchParams(location.search);
// Phones often put the address into the text.
const inText = /https?:\/\/\S+/.exec(given.get('text') ?? '')?.[0] ?? '';
const address = addressOf(given.get('url') || inText || ' ');
const hint = given.get('from') === 'bookmarklet' ? 'bookmarklet' : 'share';
const go = /** @type {HTMLButtonElement} */ (at('go'));

/** @returns {Promise<string | null>} */
async function person() {
  try {
    return await me();
  } catch (error) {
    return error instanceof SignedOut ? null : localStorage.getItem('person');
  }
}

/** @param {string} name @param {string} url */
async function keep(name, url) {
  const queue = await openQueue(name);
  const first = await save(queue, url, hint);
  const told = (/** @type {import('./ichido/ichido.js').Entry | null} */ entry) => {
    if (entry?.state === 'done') at('said').textContent = words().saved;
    if (entry?.state === 'failed') at('hint').textContent = entry.errorMessage ?? words().errors.refused;
  };
  queue.subscribe((change) => change.id === first.id && told(change.entry));
  at('said').textContent = words().savedLater;
  told(await queue.get(first.id));
}

async function start() {
  speak(document);
  at('title').textContent = given.get('title') || address || '';
  at('host').textContent = address ?? '';
  if (address === null) {
    at('hint').textContent = words().noAddressHere;
    go.disabled = true;
    return;
  }
  const name = await person();
  if (name === null) {
    sessionStorage.setItem('after-sign-in', location.pathname + location.search);
    return location.replace('/sign-in');
  }
  at('add').addEventListener('submit', async (event) => {
    event.preventDefault();
    go.disabled = true;
    try {
      await keep(name, address);
    } catch (error) {
      at('hint').textContent = error instanceof Error ? error.message : String(error);
      go.disabled = false;
    }
  });
  go.focus();
  document.documentElement.setAttribute('data-started', '');
}

void start();
