// The pages of the dashboard, for all tests that visit every page. A new page is a new line.

/**
 * A name, and the path with a message of `fill.js` in braces.
 *
 * `isShot` pages have pictures in `docs/images`. `isOpen` pages are visited without a session. Without
 * rows, a page with an id is not found; a page `isAlways` is.
 */
export const PAGES = [
  { name: 'overview', path: '/', isShot: true },
  { name: 'messages', path: '/messages', isShot: true },
  { name: 'messages-filtered', path: '/messages?q=queue:orders+state:dead+code:BAD_REQUEST' },
  { name: 'messages-wrong-filter', path: '/messages?q=colour:blue' },
  { name: 'message-sent', path: '/messages/{sent}', isShot: true },
  { name: 'message-dead', path: '/messages/{dead}', isShot: true },
  { name: 'message-parked', path: '/messages/{parked}', isShot: true },
  { name: 'message-failed', path: '/messages/{failed}' },
  { name: 'dead-letters', path: '/dead-letters', isShot: true },
  { name: 'parked', path: '/dead-letters?state=parked' },
  { name: 'queues', path: '/queues', isShot: true },
  { name: 'nodes', path: '/nodes', isShot: true },
  { name: 'help', path: '/help', isShot: true },
  { name: 'sign-in', path: '/sign-in', isShot: true, isOpen: true },
  { name: 'dead-letters-rows', path: '/dead-letters?state=dead' },
  { name: 'failure-group', path: '/dead-letters/groups/{group}', isShot: true },
  { name: 'operation-new', path: '/operations/new?action=requeue&group={group}', isShot: true, isAlways: true },
  { name: 'operation', path: '/operations/{operation}', isShot: true },
  { name: 'operations', path: '/operations', isShot: true },
  { name: 'queue', path: '/queues/orders', isShot: true },
  { name: 'destinations', path: '/destinations', isShot: true },
  { name: 'destination', path: '/destinations/broker', isShot: true },
  { name: 'models', path: '/models', isShot: true },
  { name: 'message-edit', path: '/messages/{dead}/replace' },
  { name: 'keys', path: '/keys', isShot: true },
  { name: 'keys-found', path: '/keys?key=transfer-310' },
  { name: 'audit', path: '/audit', isShot: true },
  { name: 'boundaries', path: '/boundaries', isShot: true },
  { name: 'boundary-rule', path: '/boundaries/ICH-B001' },
  { name: 'alerts', path: '/alerts', isShot: true },
];

/** An id that no message has. */
const NOBODY = '01995b1c-0000-7000-8000-000000000001';

/** Returns the path of a page, with the ids of a filled store. */
export const pathOf = (page, ids = {}) => page.path.replaceAll(/\{(\w+)\}/g, (_, name) => ids[name] ?? NOBODY);
