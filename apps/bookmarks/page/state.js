// @ts-check
// Computes the rows from the server's bookmarks and the saves that wait on this device. Pure: no clock, no network, no document.

import { inOrder, shortOf } from './address.js';
import { has } from './find.js';

/** @typedef {import('./api.js').Bookmark} Bookmark */
/** @typedef {import('./ichido/ichido.js').Entry} Entry */
/** @typedef {'retry' | 'edit' | 'remove' | 'release' | 'discard'} Step */
/** Which attempt it is, and of how many. @typedef {{ attempt: number, of: number } | null} Attempt */

/**
 * @typedef {object} Item one row of the list
 * @property {string} key  identifies the row
 * @property {'bookmark' | 'entry'} from
 * @property {string} id
 * @property {string} url
 * @property {string} title
 * @property {string | null} icon
 * @property {string[]} tags
 * @property {boolean} isPinned
 * @property {boolean} isOld  whether the pinned one was saved before
 * @property {'saving' | 'processing' | 'retrying' | 'done' | 'failed'} state
 * @property {{ kind: 'summary', summary: string, by: 'model' | 'extract' | null }
 *   | { kind: 'noSummary', code: string, message: string | null }
 *   | { kind: 'waiting' | 'sending' }
 *   | { kind: 'reading' | 'summarising', attempt: Attempt }
 *   | { kind: 'retryAt', at: number, code: string | null, attempt: Attempt }
 *   | { kind: 'error', code: string }} text
 * @property {Step[]} steps
 * @property {number} createdAt
 */

const INTENT = 'save ';

/**
 * The intent of a save. While the save is open, a second press in the same place is the same action. The same link from another place is
 * another request; the server returns the same bookmark for both.
 * @param {string} url @param {string} from @param {string} title
 */
export const intentOf = (url, from, title) => `${INTENT}${url} ${from} ${title}`;

/** The parts of an intent. A URL contains no blank. @param {Entry} entry */
function partsOf(entry) {
  const [, url = '', , title = ''] = /^save (\S*) (\S*) ([^]*)$/.exec(entry.intent ?? '') ?? [];
  return { url, title };
}

/** @param {Entry} entry */
export const urlOf = (entry) => partsOf(entry).url;

/**
 * Returns the rows: a bookmark that is pinned, saves that wait here, then the other bookmarks.
 * @param {Bookmark[]} bookmarks @param {Entry[]} entries
 * @param {{ q: string, isOnline: boolean, pinned?: { bookmark: Bookmark, isOld: boolean } | null }} seen
 * @returns {Item[]}
 */
export function items(bookmarks, entries, { q, isOnline, pinned = null }) {
  const open = entries.filter((entry) => entry.state !== 'done' && has(partsOf(entry), q));
  const waiting = open.map((entry) => ofEntry(entry, isOnline)).reverse();
  const rows = bookmarks.map((bookmark) => ofBookmark(bookmark, bookmark.id === pinned?.bookmark.id ? pinned : null));
  return rows[0]?.isPinned ? [rows[0], ...waiting, ...rows.slice(1)] : [...waiting, ...rows];
}

/** Returns how many saves will still be sent automatically. @param {Entry[]} entries */
export const waitingCount = (entries) => entries.filter((entry) => entry.state !== 'done' && entry.state !== 'failed').length;

/**
 * Returns the bookmark in the response to an entry; `null` without a response, or if it was too long to store.
 * @param {Entry} entry @returns {Bookmark | null}
 */
export function becameOf(entry) {
  if (entry.state !== 'done' || !entry.answer?.body) return null;
  try {
    const said = JSON.parse(entry.answer.body);
    return typeof said?.id === 'string' && typeof said?.url === 'string' ? said : null;
  } catch {
    return null;
  }
}

/** Whether the attempt of an entry had no response: the server cannot be reached. @param {Entry} entry */
export const isUnanswered = (entry) => entry.state === 'retrying' && entry.answer === null;

/** Whether an entry failed because a proxy said that the server is away. @param {Entry} entry */
export const wasAway = ({ canRetry, answer }) => canRetry && answer !== null && 502 <= answer.status && answer.status <= 504;

/** @param {Entry} entry @param {boolean} isOnline @returns {Item} */
function ofEntry(entry, isOnline) {
  const { url, title } = partsOf(entry);
  return {
    key: `entry-${entry.id}`,
    from: 'entry',
    id: String(entry.id),
    url,
    title: inOrder(title) || shortOf(url),
    icon: null,
    tags: [],
    isPinned: false,
    isOld: false,
    // The server has the request and has not answered it: to the person, the page is still being saved.
    state: entry.state === 'processing' ? 'saving' : entry.state,
    text: textOfEntry(entry, isOnline),
    steps: stepsOfEntry(entry),
    createdAt: entry.createdAt,
  };
}

/** @param {Entry} entry @param {boolean} isOnline @returns {Item['text']} */
function textOfEntry(entry, isOnline) {
  if (entry.isHeld) return { kind: 'error', code: 'held' };
  if (entry.state === 'failed') return { kind: 'error', code: errorOf(entry) };
  if (!isOnline) return { kind: 'waiting' };
  if (entry.state === 'retrying' && entry.nextAttemptAt !== null) return { kind: 'retryAt', at: entry.nextAttemptAt, code: null, attempt: null };
  return { kind: entry.state === 'processing' ? 'sending' : 'waiting' };
}

/** Returns why a save failed, as the code of the server's problem if it named one. @param {Entry} entry @returns {string} */
export function errorOf({ answer }) {
  if (answer === null || answer.status < 400 || 500 <= answer.status) return 'lost';
  try {
    return String(JSON.parse(answer.body ?? '').code);
  } catch {
    return 'refused';
  }
}

/** @param {Entry} entry @returns {Step[]} */
function stepsOfEntry(entry) {
  if (entry.isHeld) return ['release', 'discard'];
  // A save that waits can be discarded.
  if (entry.state === 'saving' || entry.state === 'retrying') return ['discard'];
  if (entry.state !== 'failed') return [];
  return entry.canRetry ? ['retry', 'discard'] : ['discard'];
}

/** @param {Bookmark} bookmark @param {{ isOld: boolean } | null} pinned @returns {Item} */
function ofBookmark(bookmark, pinned) {
  return {
    key: `bookmark-${bookmark.id}`,
    from: 'bookmark',
    id: bookmark.id,
    url: bookmark.url,
    title: inOrder(bookmark.title ?? '') || shortOf(bookmark.url),
    icon: bookmark.icon ?? null,
    tags: bookmark.tags ?? [],
    isPinned: pinned !== null,
    isOld: pinned?.isOld ?? false,
    state: bookmark.status,
    text: textOfBookmark(bookmark),
    // The first may disappear while it is pressed: the others are at the end of the row and stay in their places.
    steps: bookmark.can_retry ? ['retry', 'edit', 'remove'] : ['edit', 'remove'],
    createdAt: Date.parse(bookmark.created_at),
  };
}

/** @param {Bookmark} bookmark @returns {Item['text']} */
function textOfBookmark(bookmark) {
  switch (bookmark.status) {
    case 'failed':
      // The link is saved, so this is not an error of the person's.
      return { kind: 'noSummary', code: bookmark.error_code ?? 'job_failed', message: bookmark.error_message };
    case 'retrying':
      return bookmark.retry_at
        ? { kind: 'retryAt', at: Date.parse(bookmark.retry_at), code: bookmark.error_code, attempt: attemptOf(bookmark, 1) }
        : going(bookmark);
    case 'done':
      return { kind: 'summary', summary: bookmark.summary ?? '', by: bookmark.summary_by };
    default:
      return going(bookmark);
  }
}

/** The step that the job is at. @param {Bookmark} bookmark @returns {Item['text']} */
const going = (bookmark) => ({ kind: bookmark.job_type === 'llm_processing' ? 'summarising' : 'reading', attempt: attemptOf(bookmark, 0) });

/** The attempt that runs, or the next one. The first is nothing to mention. @param {Bookmark} bookmark @param {0 | 1} ahead @returns {Attempt} */
function attemptOf({ attempt, max_attempts: of }, ahead) {
  const number = (attempt ?? 0) + ahead;
  return of != null && 1 < number && number <= of ? { attempt: number, of } : null;
}
