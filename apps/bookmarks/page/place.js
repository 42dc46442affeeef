// @ts-check
// Where a person is in the list: the search is in the address, the scroll position and the number of rows are kept for a reload.

import { PLACE } from './person.js';

/** The longest list that is loaded again after a reload. */
export const MAX_RESTORED = 1_000;

/** Returns the search in the address. */
export const searchHere = () => new URLSearchParams(location.search).get('q') ?? '';

/**
 * Writes the search into the address. If the place that is left is given, Back returns to it.
 * @param {string} q @param {{ y: number, rows: number } | null} left
 */
export function rememberSearch(q, left) {
  if (q === searchHere()) return;
  const address = q === '' ? location.pathname : `?${new URLSearchParams({ q })}`;
  if (left === null) return history.replaceState(null, '', address);
  history.replaceState(left, '');
  history.pushState(null, '', address);
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
