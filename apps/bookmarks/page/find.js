// @ts-check
// Searches the bookmarks that the page has, for when the server cannot be asked. Pure.

import { readable } from './address.js';

/** @typedef {import('./api.js').Bookmark} Bookmark */

/** One spelling of a text: width and case do not matter. @param {string} text */
const fold = (text) => text.normalize('NFKC').toLowerCase();

/** Returns the parts of a search: words, phrases in quotes, and tags with `#`. @param {string} q */
const partsOf = (q) => Array.from(fold(q).matchAll(/"([^"]+)"|(\S+)/g), ([, phrase, word]) => phrase ?? word ?? '');

/** Whether a text has every part of a search. @param {string} text @param {string} q */
export const textHas = (text, q) => partsOf(q).every((part) => fold(text).includes(part));

/** Whether a bookmark has every part of a search. @param {Bookmark} bookmark @param {string} q */
export function has(bookmark, q) {
  const tags = bookmark.tags ?? [];
  const text = fold([bookmark.title, readable(bookmark.url), bookmark.summary, ...tags].filter(Boolean).join('\n'));
  return partsOf(q).every((part) => (part.length > 1 && part.startsWith('#') ? tags.includes(part.slice(1)) : text.includes(part)));
}
