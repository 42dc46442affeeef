// @ts-check
// The button for the bookmarks bar, and the code that shows our own window that this button opened it.
//
// A window that saves at once must not do so for every site that opens it. So the button contains a code that only the person's own pages
// can compute. The code allows nothing but saving a page in a window that the person sees, and it does not reveal who they are.

import { speak } from './words.js';

/** @typedef {import('./api.js').Person} Person */

const SIZE = 'width=440,height=340';
/** Names of the computer that the browser runs on. */
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$|\.localhost$/;

/** Returns the person's code; `null` where the browser has no cryptography, which is on unencrypted pages. @param {Person} person */
export async function codeOf(person) {
  const bytes = await globalThis.crypto?.subtle?.digest('SHA-256', new TextEncoder().encode(`bookmarklet ${person.id}`));
  return bytes ? Array.from(new Uint8Array(bytes, 0, 16), (byte) => byte.toString(16).padStart(2, '0')).join('') : null;
}

/** Prepares all buttons of the page. @param {Person} person @param {() => void} pressed called when a button is pressed here, where it does nothing */
export async function prepareBookmarklets(person, pressed) {
  const code = await codeOf(person);
  const address = JSON.stringify(`${location.origin}/save?from=bookmarklet&url=`);
  const end = JSON.stringify(code === null ? '' : `#${code}`);
  const open = `void(open(${address}+encodeURIComponent(location.href)+'&title='+encodeURIComponent(document.title)+${end},'_blank','popup,noopener,${SIZE}'))`;
  // Each text says what works at this address.
  const how = code === null ? 'bookmarkletPress' : LOOPBACK.test(location.hostname) ? 'bookmarkletHere' : 'bookmarkletHow';
  for (const text of document.querySelectorAll('[data-word=bookmarkletHow]')) text.setAttribute('data-word', how);
  for (const text of document.querySelectorAll('.not-secure')) /** @type {HTMLElement} */ (text).hidden = isSecureContext;
  speak(document);
  for (const button of document.querySelectorAll('a.bookmarklet')) {
    button.setAttribute('href', `javascript:${open}`);
    button.addEventListener('click', (event) => {
      event.preventDefault();
      pressed();
    });
  }
}
