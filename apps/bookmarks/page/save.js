// @ts-check
// The small window of the bookmarklet and of the Share menu. It shows the page and saves it on a press. Opening the window saves nothing, so
// no other site can save in a person's name by opening it.

import { forget, watchPerson, whoIsHere } from './person.js';
import { addressOf, openQueue, save } from './saves.js';
import { heedPresses } from './press.js';
import { speak, words } from './words.js';

/** @typedef {import('./api.js').Person} Person */

/** @template {HTMLElement} T @param {string} id */
const at = (id) => /** @type {T} */ (document.getElementById(id));

const given = new URLSearchParams(location.search);
// Phones often put the address into the text.
const inText = /https?:\/\/\S+/.exec(given.get('text') ?? '')?.[0] ?? '';
const address = addressOf(given.get('url') || inText || ' ');
const from = given.get('from') === 'bookmarklet' ? 'bookmarklet' : 'share';
const title = given.get('title') ?? '';
const go = /** @type {HTMLButtonElement} */ (at('go'));
let unheed = () => {};

async function toSignIn() {
  await forget();
  sessionStorage.setItem('after-sign-in', location.pathname + location.search);
  location.replace('/sign-in');
}

/** @param {Person} person @param {string} url */
async function keep(person, url) {
  const queue = await openQueue(person);
  const first = await save(queue, url, from, title);
  const showResult = (/** @type {import('./ichido/ichido.js').Entry | null} */ entry) => {
    if (entry?.state === 'done') {
      at('said').textContent = entry.answer?.status === 200 ? words().savedBefore : words().saved;
      go.hidden = true;
    }
    if (entry?.state !== 'failed') return;
    at('said').textContent = '';
    at('hint').textContent = entry.errorMessage ?? words().errors.refused;
  };
  queue.subscribe((change) => change.id === first.id && showResult(change.entry));
  at('said').textContent = navigator.onLine ? words().state.saving : words().savedLater;
  showResult(await queue.get(first.id));
}

/** @param {string} url */
async function press(url) {
  unheed();
  go.disabled = true;
  try {
    // Another person may have signed in since the window was opened. The page is saved for the person who presses.
    const { person } = await whoIsHere();
    if (person === null) return toSignIn();
    await keep(person, url);
  } catch (error) {
    at('hint').textContent = error instanceof Error ? error.message : String(error);
    go.disabled = false;
  }
}

async function start() {
  speak(document);
  at('title').textContent = title;
  at('title').hidden = title === '';
  at('host').textContent = address ?? '';
  if (address === null) {
    at('hint').textContent = words().noAddressHere;
    at('what').hidden = true;
    go.disabled = true;
    return;
  }
  const { person } = await whoIsHere();
  if (person === null) return toSignIn();
  at('who').textContent = person.name;
  watchPerson(person);
  at('add').addEventListener('submit', (event) => {
    event.preventDefault();
    void press(address);
  });
  unheed = heedPresses(go, () => go.focus());
  document.documentElement.setAttribute('data-started', '');
}

void start();
