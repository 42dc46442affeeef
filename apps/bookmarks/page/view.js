// @ts-check
// The rows of the list. Everything is inserted as text, so no foreign markup is parsed.

import { language, words } from './words.js';

/** @typedef {import('./state.js').Item} Item */
/** @typedef {import('./state.js').Step} Step */

/** Updates the rows of `list`, and changes only what differs. @param {HTMLElement} list @param {Item[]} items @param {number} now */
export function show(list, items, now) {
  const before = new Map([...list.children].map((row) => [row.getAttribute('data-key'), /** @type {HTMLElement} */ (row)]));
  const wanted = new Set(items.map((item) => item.key));
  // Remove rows first: a row that is moved loses the focus.
  for (const [key, row] of before) if (!wanted.has(key ?? '')) row.remove();
  items.forEach((item, place) => {
    const row = before.get(item.key) ?? newRow(item);
    fill(row, item, now);
    if (list.children[place] !== row) list.insertBefore(row, list.children[place] ?? null);
  });
}

/** @template {keyof HTMLElementTagNameMap} T @param {T} tag @param {string} name */
function make(tag, name) {
  const element = document.createElement(tag);
  element.className = name;
  return element;
}

/** @param {Item} item */
function newRow(item) {
  const row = make('li', 'item');
  row.setAttribute('data-key', item.key);
  row.tabIndex = -1;
  const title = make('h2', 'name');
  title.append(make('a', 'link'));
  const meta = make('div', 'meta');
  meta.append(make('span', 'state'), make('span', 'host'), make('time', 'when'), make('span', 'by'), make('span', 'doing'));
  row.append(title, meta, make('p', 'text'));
  return row;
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
  link(/** @type {HTMLAnchorElement} */ (part(row, 'link')), item);
  say(part(row, 'state'), words().state[item.state]);
  say(part(row, 'host'), hostOf(item.url));
  const when = /** @type {HTMLTimeElement} */ (part(row, 'when'));
  when.dateTime = new Date(item.createdAt).toISOString();
  say(when, ago(item.createdAt, now));
  say(part(row, 'by'), item.text.kind === 'summary' && item.text.by === 'extract' ? words().byExtract : '');
  const text = part(row, 'text');
  text.classList.toggle('error', item.text.kind === 'error');
  say(text, textOf(item.text));
  buttons(part(row, 'doing'), item);
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

/** @type {Record<Step, 'retry' | 'remove' | 'sendAnyway' | 'giveUp'>} */
const NAMES = { retry: 'retry', remove: 'remove', release: 'sendAnyway', discard: 'giveUp' };

/** @param {HTMLElement} place @param {Item} item */
function buttons(place, item) {
  const wanted = item.steps.join(' ');
  const spoken = `${wanted} ${language()}`;
  if (place.getAttribute('data-steps') === spoken) return;
  place.setAttribute('data-steps', spoken);
  place.replaceChildren(
    ...item.steps.map((step) => {
      const button = make('button', 'plain');
      button.type = 'button';
      button.setAttribute('data-step', step);
      button.textContent = words()[NAMES[step]];
      // A screen reader says which row the button belongs to.
      button.setAttribute('aria-label', `${words()[NAMES[step]]}: ${item.title}`);
      return button;
    }),
  );
}

/** @param {Item['text']} text @returns {string} */
function textOf(text) {
  const said = words();
  const errors = /** @type {Record<string, string>} */ (said.errors);
  switch (text.kind) {
    case 'summary':
      return text.summary || said.noText;
    case 'retryAt': {
      const why = text.code === null ? '' : (errors[text.code] ?? said.errors.job_failed);
      return said.retryAt(why, new Date(text.at).toLocaleTimeString(language(), { hour: 'numeric', minute: '2-digit' }));
    }
    case 'error':
      // Our own text in the reader's language if there is one, otherwise the server's.
      return text.message !== null && !(text.code in errors && text.code !== 'refused') ? text.message : (errors[text.code] ?? errors.job_failed ?? '');
    default:
      return said[text.kind];
  }
}

/** @param {string} url */
function hostOf(url) {
  try {
    return new URL(url).hostname.replace(/^www\./, '');
  } catch {
    return url;
  }
}

const STEPS = /** @type {const} */ ([
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
]);

/** @param {number} then @param {number} now */
function ago(then, now) {
  const relative = new Intl.RelativeTimeFormat(language(), { numeric: 'auto' });
  const passed = Math.max(0, now - then);
  if (passed > 7 * 86_400_000) return new Date(then).toLocaleDateString(language());
  const step = STEPS.find(([, length]) => passed >= length);
  return step ? relative.format(-Math.floor(passed / step[1]), step[0]) : relative.format(0, 'second');
}
