// @ts-check
// Computes the rows from the server's bookmarks and the saves that wait on this device. Pure: no clock, no network, no document.

/** @typedef {import('./api.js').Bookmark} Bookmark */
/** @typedef {import('./ichido/ichido.js').Entry} Entry */
/** @typedef {'retry' | 'remove' | 'release' | 'discard'} Step */

/**
 * @typedef {object} Item one row of the list
 * @property {string} key  identifies the row
 * @property {'bookmark' | 'entry'} from
 * @property {string} id
 * @property {string} url
 * @property {string} title
 * @property {'saving' | 'processing' | 'retrying' | 'done' | 'failed'} state
 * @property {{ kind: 'summary', summary: string, by: 'model' | 'extract' | null }
 *   | { kind: 'waiting' | 'sending' | 'reading' | 'summarising' }
 *   | { kind: 'retryAt', at: number, code: string | null }
 *   | { kind: 'error', code: string, message: string | null }} text
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

/** A URL contains no blank. @param {Entry} entry */
export const urlOf = (entry) => (entry.intent?.startsWith(INTENT) ? (entry.intent.slice(INTENT.length).split(' ', 1)[0] ?? '') : '');

/**
 * Returns the rows, newest first: saves that wait here, then bookmarks.
 * @param {Bookmark[]} bookmarks @param {Entry[]} entries @param {{ q: string, isOnline: boolean }} seen
 * @returns {Item[]}
 */
export function items(bookmarks, entries, { q, isOnline }) {
  const wanted = q.trim().toLowerCase();
  const open = entries.filter((entry) => entry.state !== 'done' && urlOf(entry).toLowerCase().includes(wanted));
  const waiting = open.map((entry) => ofEntry(entry, isOnline)).reverse();
  return [...waiting, ...bookmarks.map(ofBookmark)];
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

/** Returns the list with this bookmark added or updated. @param {Bookmark[]} list @param {Bookmark} bookmark */
export function withBookmark(list, bookmark) {
  const known = list.some((one) => one.id === bookmark.id);
  return known ? list.map((one) => (one.id === bookmark.id ? bookmark : one)) : [bookmark, ...list];
}

/** Whether a row is about to change, so the list is read again soon. @param {Item[]} shown */
export const isMoving = (shown) => shown.some((item) => item.state === 'processing' || item.state === 'saving');

/** A short form of the URL, shown where there is no title. @param {string} url */
const bare = (url) => url.replace(/^https?:\/\/(www\.)?/, '').replace(/\/$/, '');

/** @param {Entry} entry @param {boolean} isOnline @returns {Item} */
function ofEntry(entry, isOnline) {
  const url = urlOf(entry);
  return {
    key: `entry-${entry.id}`,
    from: 'entry',
    id: String(entry.id),
    url,
    title: bare(url),
    // The server has the request and has not answered it: to the person, the page is still being saved.
    state: entry.state === 'processing' ? 'saving' : entry.state,
    text: textOfEntry(entry, isOnline),
    steps: stepsOfEntry(entry),
    createdAt: entry.createdAt,
  };
}

/** @param {Entry} entry @param {boolean} isOnline @returns {Item['text']} */
function textOfEntry(entry, isOnline) {
  if (entry.isHeld) return { kind: 'error', code: 'held', message: null };
  if (entry.state === 'failed') {
    // The server's own text if there is one: it says what is wrong with the URL.
    const refused = entry.answer !== null && entry.answer.status >= 400 && entry.answer.status < 500;
    return { kind: 'error', code: refused ? 'refused' : 'lost', message: refused ? detailOf(entry) : null };
  }
  if (!isOnline) return { kind: 'waiting' };
  if (entry.state === 'retrying' && entry.nextAttemptAt !== null) return { kind: 'retryAt', at: entry.nextAttemptAt, code: null };
  return { kind: entry.state === 'processing' ? 'sending' : 'waiting' };
}

/** @param {Entry} entry @returns {string | null} */
function detailOf(entry) {
  try {
    const detail = JSON.parse(entry.answer?.body ?? '').detail;
    return typeof detail === 'string' ? detail : null;
  } catch {
    return null;
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

/** @param {Bookmark} bookmark @returns {Item} */
function ofBookmark(bookmark) {
  return {
    key: `bookmark-${bookmark.id}`,
    from: 'bookmark',
    id: bookmark.id,
    url: bookmark.url,
    title: bookmark.title || bare(bookmark.url),
    state: bookmark.status,
    text: textOfBookmark(bookmark),
    steps: bookmark.can_retry ? ['retry', 'remove'] : ['remove'],
    createdAt: Date.parse(bookmark.created_at),
  };
}

/** @param {Bookmark} bookmark @returns {Item['text']} */
function textOfBookmark(bookmark) {
  const code = bookmark.error_code ?? 'job_failed';
  switch (bookmark.status) {
    case 'failed':
      return { kind: 'error', code, message: bookmark.error_message };
    case 'retrying':
      return bookmark.retry_at
        ? { kind: 'retryAt', at: Date.parse(bookmark.retry_at), code: bookmark.error_code }
        : going(bookmark);
    case 'done':
      return { kind: 'summary', summary: bookmark.summary ?? '', by: bookmark.summary_by };
    default:
      return going(bookmark);
  }
}

/** The step that the job is at. @param {Bookmark} bookmark @returns {Item['text']} */
const going = (bookmark) => ({ kind: bookmark.job_type === 'llm_processing' ? 'summarising' : 'reading' });
