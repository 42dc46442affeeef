// @ts-check
// The rows of the list. Everything is inserted as text, so no foreign markup is parsed.

import { hostOf } from './address.js';
import { errorText, language, words } from './words.js';

/** @typedef {import('./state.js').Item} Item */
/** @typedef {import('./state.js').Step} Step */

/** A text that is shorter than this fits into its line on every screen, so there is nothing to unfold. */
const SHORT_TEXT = 30;

const MINUTE_MS = 60_000;

/** What each row shows. @type {WeakMap<Element, string>} */
const SHOWN = new WeakMap();

/** Updates the rows of `list`, and changes only what differs. @param {HTMLElement} list @param {Item[]} items @param {number} now */
export function show(list, items, now) {
  const before = new Map([...list.children].map((row) => [row.getAttribute('data-key'), /** @type {HTMLElement} */ (row)]));
  const wanted = new Set(items.map((item) => item.key));
  // Remove rows first: a row that is moved loses the focus.
  for (const [key, row] of before) if (!wanted.has(key ?? '')) row.remove();
  const spoken = language();
  items.forEach((item, place) => {
    const row = before.get(item.key) ?? newRow(item);
    // A long list is drawn often, and hardly ever changes.
    const time = item.text.kind === 'retryAt' ? now : Math.floor((now - item.createdAt) / MINUTE_MS);
    const shown = JSON.stringify([item, spoken, time, row.hasAttribute('data-open')]);
    if (SHOWN.get(row) !== shown) fill(row, item, now);
    SHOWN.set(row, shown);
    if (list.children[place] !== row) list.insertBefore(row, list.children[place] ?? null);
  });
}

/** @template {keyof HTMLElementTagNameMap} T @param {T} tag @param {string} name */
export function make(tag, name) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  return element;
}

/** @param {Item} item */
function newRow(item) {
  const row = make('li', 'item');
  row.setAttribute('data-key', item.key);
  row.tabIndex = -1;
  const title = make('h3', 'name');
  title.append(make('a', 'link'));
  const line = make('div', 'line');
  line.append(make('p', 'text'), unfolder());
  const meta = make('div', 'meta');
  meta.append(make('span', 'mark'), make('span', 'host'), make('time', 'when'), make('span', 'by'), make('span', 'tags'), make('span', 'doing'));
  row.append(make('span', 'icon'), title, line, meta);
  return row;
}

function unfolder() {
  const button = make('button', 'unfold');
  button.type = 'button';
  button.append(make('span', 'chevron'));
  return button;
}

/** Shows the full text of a row, or its first line again. @param {Element} row */
export function unfold(row) {
  row.toggleAttribute('data-open');
  part(/** @type {HTMLElement} */ (row), 'unfold').setAttribute('aria-expanded', String(row.hasAttribute('data-open')));
}

/** @param {HTMLElement} row @param {string} name */
const part = (row, name) => /** @type {HTMLElement} */ (row.querySelector(`.${name}`));

/** @param {HTMLElement} element @param {string} text */
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** @param {HTMLElement} row @param {Item} item @param {number} now */
function fill(row, item, now) {
  row.setAttribute('data-state', item.state);
  row.setAttribute('data-text', item.text.kind);
  row.toggleAttribute('data-pinned', item.isPinned);
  icon(part(row, 'icon'), item);
  link(/** @type {HTMLAnchorElement} */ (part(row, 'link')), item);
  say(part(row, 'mark'), item.isPinned ? words().mark[item.isOld ? 'before' : 'saved'] : '');
  say(part(row, 'host'), hostOf(item.url));
  const when = /** @type {HTMLTimeElement} */ (part(row, 'when'));
  when.dateTime = new Date(item.createdAt).toISOString();
  say(when, ago(item.createdAt, now));
  say(part(row, 'by'), item.text.kind === 'summary' && item.text.by === 'extract' ? words().byExtract : '');
  const text = textOf(item.text, row.hasAttribute('data-open'), now);
  sayText(part(row, 'text'), item, text);
  unfolds(part(row, 'unfold'), item, text);
  tags(part(row, 'tags'), item.tags);
  buttons(part(row, 'doing'), item);
}

/**
 * The words of a page without a summary are the button that shows the reason, which follows them.
 * @param {HTMLElement} place @param {Item} item @param {string} text
 */
function sayText(place, item, text) {
  if (item.text.kind !== 'noSummary') return say(place, text);
  if (!place.querySelector('.reason')) place.replaceChildren(Object.assign(make('button', 'reason'), { type: 'button' }), '');
  const [button, reason] = /** @type {[HTMLElement, Text]} */ (/** @type {unknown} */ (place.childNodes));
  const said = words();
  say(button, said.noSummary);
  button.setAttribute('aria-label', `${said.noSummary}: ${said.why}`);
  button.setAttribute('aria-expanded', String(place.closest('.item')?.hasAttribute('data-open')));
  reason.data = text.slice(said.noSummary.length);
}

/** @param {HTMLElement} button @param {Item} item @param {string} text */
function unfolds(button, item, text) {
  const width = Array.from(text).reduce((sum, letter) => sum + (letter > '\u2e7f' ? 2 : 1), 0);
  button.hidden = item.text.kind !== 'noSummary' && width < SHORT_TEXT;
  const label = `${words().unfold}: ${item.title}`;
  if (button.getAttribute('aria-label') !== label) button.setAttribute('aria-label', label);
  button.setAttribute('aria-expanded', String(button.closest('.item')?.hasAttribute('data-open')));
}

/** The icon of the site, or the first letter of its name. @param {HTMLElement} place @param {Item} item */
function icon(place, item) {
  const wanted = `${item.icon ?? ''} ${item.url}`;
  if (place.getAttribute('data-of') === wanted) return;
  place.setAttribute('data-of', wanted);
  const letter = () => place.replaceChildren(hostOf(item.url).slice(0, 1).toUpperCase());
  // Only our own server is asked, whatever it returns.
  if (!item.icon?.startsWith('/v1/')) return letter();
  const image = make('img', '');
  image.width = image.height = 16;
  image.alt = '';
  image.loading = 'lazy';
  image.decoding = 'async';
  image.addEventListener('error', letter);
  image.src = item.icon;
  place.replaceChildren(image);
}

/** @param {HTMLAnchorElement} link @param {Item} item */
function link(link, item) {
  say(link, item.title);
  link.title = item.title;
  // Only web pages are linked, whatever the server returns.
  if (/^https?:\/\//i.test(item.url)) link.href = item.url;
  link.target = '_blank';
  link.rel = 'noopener noreferrer';
}

/** @param {HTMLElement} place @param {string[]} tags */
function tags(place, tags) {
  const wanted = tags.join('\n');
  if (place.getAttribute('data-tags') === wanted) return;
  place.setAttribute('data-tags', wanted);
  place.replaceChildren(
    ...tags.map((tag) => {
      const button = Object.assign(make('button', 'tag'), { type: 'button', textContent: `#${tag}` });
      button.setAttribute('data-tag', tag);
      return button;
    }),
  );
}

/** @type {Record<Step, 'retry' | 'edit' | 'remove' | 'sendAnyway' | 'giveUp'>} */
const NAMES = { retry: 'retry', edit: 'edit', remove: 'remove', release: 'sendAnyway', discard: 'giveUp' };

/** @param {HTMLElement} place @param {Item} item */
function buttons(place, item) {
  // What has no text will have none at the next attempt either.
  const isHopeless = item.text.kind === 'noSummary' && item.text.code === 'page_not_text';
  const wanted = `${item.steps.join(' ')} ${isHopeless} ${language()} ${item.title}`;
  if (place.getAttribute('data-steps') === wanted) return;
  place.setAttribute('data-steps', wanted);
  const focused = place.contains(document.activeElement) ? document.activeElement?.getAttribute('data-step') : null;
  place.replaceChildren(
    ...item.steps.map((step) => {
      const button = Object.assign(make('button', 'plain'), { type: 'button', textContent: words()[NAMES[step]] });
      button.setAttribute('data-step', step);
      button.toggleAttribute('data-quiet', step === 'retry' && isHopeless);
      // A screen reader says which row the button belongs to.
      button.setAttribute('aria-label', `${words()[NAMES[step]]}: ${item.title}`);
      return button;
    }),
  );
  if (focused) /** @type {HTMLElement} */ (place.querySelector(`[data-step="${focused}"]`) ?? place.closest('.item')).focus();
}

/** @param {Item['text']} text @param {boolean} isOpen @param {number} now @returns {string} */
function textOf(text, isOpen, now) {
  const said = words();
  const errors = /** @type {Record<string, string>} */ (said.errors);
  // Our own text in the reader's language if there is one, otherwise the server's.
  const why = (/** @type {string} */ code, /** @type {string | null} */ message) =>
    errors[code] ?? message ?? said.errors.job_failed;
  const nth = (/** @type {import('./state.js').Attempt} */ attempt) => (attempt === null ? '' : said.attempt(attempt.attempt, attempt.of));
  switch (text.kind) {
    case 'summary':
      return text.summary || said.noText;
    case 'noSummary':
      return isOpen ? said.because(why(text.code, text.message)) : said.noSummary;
    case 'retryAt':
      return said.retryAt(ahead(text.at, now), nth(text.attempt), text.code === null ? '' : why(text.code, null));
    case 'error':
      return errorText(text.code);
    case 'reading':
    case 'summarising':
      return said[text.kind] + nth(text.attempt);
    default:
      return said[text.kind];
  }
}

const STEPS = /** @type {const} */ ([
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', MINUTE_MS],
]);

/** @type {Map<string, Intl.RelativeTimeFormat>} */
const RELATIVE = new Map();

function relative() {
  const known = RELATIVE.get(language()) ?? new Intl.RelativeTimeFormat(language(), { numeric: 'auto' });
  RELATIVE.set(language(), known);
  return known;
}

/** @param {number} then @param {number} now */
function ago(then, now) {
  const passed = Math.max(0, now - then);
  if (passed > 7 * 86_400_000) return new Date(then).toLocaleDateString(language(), { year: 'numeric', month: 'short', day: 'numeric' });
  const step = STEPS.find(([, length]) => passed >= length);
  return step ? relative().format(-Math.floor(passed / step[1]), step[0]) : relative().format(0, 'second');
}

/** @param {number} then @param {number} now */
function ahead(then, now) {
  const left = Math.max(0, then - now);
  const step = STEPS.find(([, length]) => left >= length);
  return step ? relative().format(Math.round(left / step[1]), step[0]) : relative().format(Math.ceil(left / 1_000), 'second');
}
