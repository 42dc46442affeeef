// @ts-check
// Searches the bookmarks that the page has, for when the server cannot be asked. Pure.

import { spotOf } from './address.js';

/** What can be found. @typedef {{ url: string, title: string | null, summary?: string | null, tags?: string[] }} Findable */

/** One spelling of a text: width and case do not matter. @param {string} text */
const fold = (text) => text.normalize('NFKC').toLowerCase();

/** A part of a search: a phrase in quotes, or a word; with `#`, a tag. */
const PART = /(#?)(?:"([^"]*)"?|(\S+))/g;
const SAYS_SOMETHING = /[\p{L}\p{N}]/u;

/** Returns the search that finds one tag and no longer one. @param {string} tag */
export const searchOf = (tag) => (tag.includes('"') ? `#${tag}` : `#"${tag}"`);

/** Whether a bookmark, or a save that waits, has every part of a search. @param {Findable} what @param {string} q */
export function has({ url, title, summary, tags = [] }, q) {
  const text = fold([title, spotOf(url) ?? url, summary, ...tags].filter(Boolean).join('\n'));
  const wanted = fold(q).trim();
  return Array.from(wanted.matchAll(PART)).every(({ 0: part, 1: sign, 2: phrase, 3: word = '', index }) => {
    if (!SAYS_SOMETHING.test(part)) return true;
    if (sign === '') return text.includes(phrase ?? spotOf(word, { isTyped: true }) ?? word);
    const tag = (phrase ?? word).trim().replace(/^#+/, '');
    // The last word is still being typed.
    const isPrefix = phrase === undefined && index + part.length === wanted.length;
    return tags.some((one) => one === tag || (isPrefix && one.startsWith(tag)));
  });
}
