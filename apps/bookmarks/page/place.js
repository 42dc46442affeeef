// @ts-check
// Where a person is in the list: the search is in the address, the scroll position and the number of rows are kept for a reload.

import { PLACE } from './person.js';

/** The longest list that is loaded again after a reload. */
export const MAX_RESTORED = 1_000;

/** Returns the search in the address. */
export const searchHere = () => new URLSearchParams(location.search).get('q') ?? '';

/** Writes the search into the address. @param {string} q */
export function rememberSearch(q) {
  if (q === searchHere()) return;
  history.replaceState(null, '', q === '' ? location.pathname : `?${new URLSearchParams({ q })}`);
}

/** Returns what was stored when this tab was left with this search. @returns {{ y: number, rows: number }} */
export function placeHere() {
  try {
    const place = JSON.parse(sessionStorage.getItem(PLACE) ?? 'null');
    if (place?.q === searchHere()) return { y: Number(place.y) || 0, rows: Math.min(Number(place.rows) || 0, MAX_RESTORED) };
  } catch {
    // Not ours: the list begins at its top.
  }
  return { y: 0, rows: 0 };
}

/** Stores the place whenever the page is left. @param {() => number} rows */
export function keepPlace(rows) {
  history.scrollRestoration = 'manual';
  addEventListener('pagehide', () => sessionStorage.setItem(PLACE, JSON.stringify({ q: searchHere(), y: scrollY, rows: rows() })));
}
