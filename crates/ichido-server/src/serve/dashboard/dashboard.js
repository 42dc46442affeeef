// Adds live updates, keys, suggestions and copying. Everything else works without it.

const body = document.body;
const { base } = body.dataset;
const find = (selector, root = document) => [...root.querySelectorAll(selector)];
const byId = (id) => document.getElementById(id);

// Copying. Without a secure connection there is no clipboard, so the text is selected and copied the old way.
async function copy(button) {
  const source = byId(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(source.textContent);
  } catch {
    getSelection().selectAllChildren(source);
    document.execCommand('copy');
  }
  const name = button.textContent;
  button.textContent = body.dataset.copied;
  setTimeout(() => { button.textContent = name; }, 1500);
}

// Buttons that need the script, and times in the person's time zone.
function enliven(root) {
  for (const button of find('button.copy', root)) button.hidden = false;
  for (const time of find('time[datetime]', root)) {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.getTime())) time.title = `${time.title.split(' · ')[0]} · ${at.toLocaleString()}`;
  }
  for (const button of find('[data-keys-switch]', root)) showKeysSwitch(button);
}

// Keys. None changes anything or works while a person writes, and a person can switch them off for this browser.
const KEYS = 'ichido_keys';
const GO_MS = 1500;
let went = -GO_MS;
function keysAreOn() {
  try { return localStorage.getItem(KEYS) !== 'off'; } catch { return true; }
}
function showKeysSwitch(button) {
  button.hidden = false;
  button.textContent = keysAreOn() ? button.dataset.off : button.dataset.on;
}
function switchKeys() {
  try { localStorage.setItem(KEYS, keysAreOn() ? 'off' : 'on'); } catch { return; }
  find('[data-keys-switch]').forEach(showKeysSwitch);
}
function go(key) {
  find('#navigation a[data-key]').find((link) => link.dataset.key === key)?.click();
}
function step(by) {
  const rows = find('main [data-row]').filter((row) => row.querySelector('a') && row.offsetHeight);
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const to = at < 0 && by < 0 ? rows.length - 1 : at + by;
  const link = rows[Math.min(Math.max(to, 0), rows.length - 1)]?.querySelector('a');
  link?.focus({ focusVisible: true });
  link?.scrollIntoView({ block: 'nearest' });
}
async function showKeys() {
  let dialog = byId('keys-dialog');
  if (!dialog) {
    try {
      const response = await fetch(`${base}/help`);
      const page = new DOMParser().parseFromString(await response.text(), 'text/html');
      const keys = document.importNode(page.getElementById('keys'), true);
      dialog = Object.assign(document.createElement('dialog'), { id: 'keys-dialog', className: 'panel' });
      const close = Object.assign(document.createElement('button'), { textContent: body.dataset.close, autofocus: true });
      close.addEventListener('click', () => dialog.close());
      dialog.setAttribute('aria-labelledby', 'keys-title');
      keys.removeAttribute('id');
      dialog.append(keys, close);
      enliven(dialog);
      body.append(dialog);
    } catch {
      location.href = `${base}/help#keys`;
      return;
    }
  }
  if (!dialog.open) dialog.showModal();
}
function closeOpen(except) {
  for (const open of find('details.term[open], details.more[open]')) {
    if (!open.contains(except)) open.open = false;
  }
}
const COMMANDS = {
  '/': () => {
    const box = byId('q');
    if (box) box.select(); else location.href = `${base}/messages`;
  },
  '?': () => (byId('keys') ? byId('keys').scrollIntoView() : showKeys()),
  g: (event) => { went = event.timeStamp; },
  j: () => step(1),
  k: () => step(-1),
  o: () => document.activeElement.closest('[data-row]')?.querySelector('a')?.click(),
};
document.addEventListener('keydown', (event) => {
  const writes = event.target.closest('input, textarea, select, [contenteditable]');
  if (event.key === 'Escape') {
    closeOpen(null);
    if (writes && !event.defaultPrevented) writes.blur();
    return;
  }
  if (writes || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest('dialog') || !keysAreOn()) return;
  if (event.timeStamp - went < GO_MS) {
    went = -GO_MS;
    go(event.key);
  } else if (Object.hasOwn(COMMANDS, event.key)) {
    event.preventDefault();
    COMMANDS[event.key](event);
  }
});
document.addEventListener('click', (event) => {
  closeOpen(event.target);
  const button = event.target.closest('button.copy');
  if (button) copy(button);
  if (event.target.closest('[data-keys-switch]')) switchKeys();
  if (event.target.closest('[data-keys]') && !byId('keys') && keysAreOn()) {
    event.preventDefault();
    showKeys();
  }
});

// Suggestions for the filter: the browser's own list knows only whole values, and a filter has several terms.
const MAX_SUGGESTIONS = 8;
function suggest(input) {
  const source = input.list;
  if (!source) return;
  const options = [...source.options].map((option) => ({ value: option.value, about: option.label }));
  const list = Object.assign(document.createElement('ul'), { id: `${input.id}-suggestions`, className: 'suggestions', hidden: true });
  input.removeAttribute('list');
  list.setAttribute('role', 'listbox');
  list.setAttribute('aria-label', source.getAttribute('aria-label') ?? '');
  input.after(list);
  const attributes = { role: 'combobox', 'aria-autocomplete': 'list', 'aria-expanded': 'false', 'aria-controls': list.id };
  for (const [name, value] of Object.entries(attributes)) input.setAttribute(name, value);
  let chosen = -1;

  // The term under the cursor: what follows the last space outside of quotes.
  const term = () => /(?:[^\s"]|"[^"]*"?)*$/.exec(input.value.slice(0, input.selectionStart))[0];
  function choose(to) {
    chosen = to;
    [...list.children].forEach((item, index) => item.setAttribute('aria-selected', String(index === to)));
    const item = list.children[to];
    item?.scrollIntoView({ block: 'nearest' });
    if (item) input.setAttribute('aria-activedescendant', item.id); else input.removeAttribute('aria-activedescendant');
  }
  function close() {
    list.hidden = true;
    input.setAttribute('aria-expanded', 'false');
    choose(-1);
  }
  function open() {
    const typed = term().toLowerCase();
    const others = input.value.slice(0, input.selectionStart - typed.length).split(/\s+/);
    const isUsed = (value) => others.some((other) => other.split(':')[0] === value.split(':')[0] && other.includes(':'));
    // Values of a name are offered once the name is written, or enough of a value.
    const fits = ({ value }) => {
      const [name, rest] = [value.slice(0, value.indexOf(':') + 1), value.slice(value.indexOf(':') + 1)];
      if (value.toLowerCase() === typed || isUsed(value)) return false;
      return rest && !typed.startsWith(name) ? typed.length > 1 && rest.toLowerCase().startsWith(typed) : value.toLowerCase().startsWith(typed);
    };
    const found = options.filter(fits).slice(0, MAX_SUGGESTIONS);
    list.replaceChildren(...found.map(({ value, about }, index) => {
      const item = Object.assign(document.createElement('li'), { id: `${list.id}-${index}` });
      item.setAttribute('role', 'option');
      const code = Object.assign(document.createElement('code'), { textContent: value });
      item.append(code, Object.assign(document.createElement('small'), { textContent: about === value ? '' : about }));
      return item;
    }));
    list.hidden = found.length === 0;
    input.setAttribute('aria-expanded', String(!list.hidden));
    choose(-1);
  }
  function take(index) {
    const value = list.children[index].querySelector('code').textContent;
    const [end, typed] = [input.selectionStart, term()];
    const text = value.endsWith(':') || value.endsWith('/') ? value : `${value} `;
    input.setRangeText(text, end - typed.length, end, 'end');
    open();
  }
  input.addEventListener('input', open);
  input.addEventListener('click', open);
  input.addEventListener('blur', close);
  list.addEventListener('mousedown', (event) => {
    event.preventDefault();
    const item = event.target.closest('li');
    if (item) take([...list.children].indexOf(item));
  });
  input.addEventListener('keydown', (event) => {
    const count = list.children.length;
    if (event.isComposing) return;
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      if (list.hidden) open();
      else if (count) choose((chosen + (event.key === 'ArrowDown' ? 1 : count + (chosen < 0 ? 0 : -1))) % count);
    } else if (!list.hidden && event.key === 'Escape') {
      event.preventDefault();
      close();
    } else if (!list.hidden && chosen >= 0 && (event.key === 'Enter' || event.key === 'Tab')) {
      event.preventDefault();
      take(chosen);
    }
  });
}

// Live updates. After an event the page is fetched again, and what differs is changed in place, but nothing that has the focus, a
// selection, an open explanation or a half-filled form. A change that would move what a person looks at waits until the person asks
// for it, or has not touched the page for a minute.
const IDLE_MS = 60_000;
let touchedAt = 0;
let held = null;
for (const kind of ['pointermove', 'pointerdown', 'keydown', 'scroll', 'wheel']) {
  addEventListener(kind, (event) => { touchedAt = event.timeStamp; }, { passive: true, capture: true });
}
const isField = (node) => node.matches?.('input, textarea, select');
const isFilled = (field) => (field.type === 'radio' || field.type === 'checkbox' ? field.checked !== field.defaultChecked
  : field.type !== 'hidden' && field.value !== (field.defaultValue ?? field.value));
function isInUse(node) {
  const selection = getSelection();
  return node.contains(document.activeElement) && document.activeElement !== body
    || !selection.isCollapsed && selection.containsNode(node, true)
    || node.querySelector?.('details[open]') != null || node.matches?.('details[open]')
    || node.querySelector != null && find('input, textarea, select', node).some(isFilled);
}
function isOnScreen(node) {
  const { top, bottom } = node.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
}
// A longer text may also wrap, and then only what is around it gets higher.
const heights = (node) => `${node.offsetHeight} ${node.parentElement.offsetHeight}`;
class Patch {
  constructor(fresh, isAsked) {
    this.fresh = fresh;
    this.isAsked = isAsked;
    this.isHeld = false;
    this.isNewer = false;
    this.news = [];
  }

  run() {
    for (const part of find('[data-part][id]').filter((part) => !part.parentElement.closest('[data-part]'))) {
      const next = this.fresh.getElementById(part.id);
      if (next) this.update(part, document.importNode(next, true));
    }
    return this;
  }

  // Changes a node with an id, unless that would move what is on the screen. What must never be old changes at once.
  update(node, next) {
    enliven(next);
    if (node.isEqualNode(next)) return;
    const [height, old, text] = [heights(node), node.cloneNode(true), node.textContent];
    this.morph(node, next);
    if (!this.isAsked && node.dataset.now === undefined && heights(node) !== height && isOnScreen(node) && !isInUse(node)) {
      node.replaceWith(old);
      this.isHeld = true;
    } else if (node.dataset.announce !== undefined && node.textContent !== text) {
      this.news.push(node.textContent.replace(/\s+/g, ' ').trim());
    }
  }

  morph(node, next) {
    if (node.nodeType === Node.TEXT_NODE) {
      // Another node: a browser counts a longer number on the right as moved.
      if (node.data !== next.data && !isInUse(node)) node.replaceWith(next.data);
      return;
    }
    if (isField(node)) return;
    // A form that a person has opened or filled in does what it said then.
    if (node.matches?.('form, details') && isInUse(node)) {
      if (node.open) next.open = true;
      this.isHeld ||= !node.isEqualNode(next);
      return;
    }
    for (const { name } of [...node.attributes]) {
      if (!next.hasAttribute(name) && name !== 'open') node.removeAttribute(name);
    }
    for (const { name, value } of next.attributes) {
      if (node.getAttribute(name) !== value && name !== 'open') node.setAttribute(name, value);
    }
    // Of a sentence with links, what did not change would move beside what did.
    if (node.hasAttribute('data-whole') && !isInUse(node)) {
      node.replaceChildren(...next.childNodes);
      return;
    }
    // A list keeps its rows, so nothing moves under a person's eyes; those that it no longer has are marked.
    if (next.hasAttribute('data-rows') && !this.isAsked) this.known(node, next); else this.children(node, next);
  }

  children(node, next) {
    const [olds, news] = [[...node.childNodes], [...next.childNodes]];
    const isSame = (old, fresh) => old.nodeName === fresh.nodeName && (old.id ?? '') === (fresh.id ?? '');
    if (olds.length === news.length && olds.every((old, index) => isSame(old, news[index]))) {
      olds.forEach((old, index) => (old.id ? this.update(old, news[index]) : this.morph(old, news[index])));
    } else if (!isInUse(node)) {
      node.replaceChildren(...news);
    } else {
      this.known(node, next);
      this.isHeld = true;
    }
  }

  // Changes the children that both have.
  known(node, next) {
    const fresh = new Map([...next.children].filter((child) => child.id).map((child) => [child.id, child]));
    for (const child of node.children) {
      const same = fresh.get(child.id);
      if (same) this.update(child, same);
      if (node.dataset.rows === undefined) continue;
      child.toggleAttribute('data-gone', !same);
      this.isNewer ||= !same;
    }
    this.isNewer ||= node.dataset.rows !== undefined && [...fresh.keys()].some((id) => !byId(id));
  }
}

// What the page says about itself: nothing while it is live.
let state = 'off';
let knownAt = new Date();
const bar = byId('live-state');
function say(text, action) {
  const parts = [text];
  if (action) {
    const button = Object.assign(document.createElement('button'), { textContent: body.dataset.show, className: 'quiet', type: 'button' });
    button.addEventListener('click', action);
    parts.push(' ', button);
  }
  bar.replaceChildren(...parts.filter(Boolean));
}
function setState(next) {
  if (next === state) return;
  const was = state;
  state = next;
  bar.dataset.state = next;
  const time = knownAt.toLocaleTimeString([], { hourCycle: 'h23' });
  if (next === 'lost') say(body.dataset.serverAway.replace('{time}', time));
  else if (next === 'away') say(body.dataset.storeAway.replace('{time}', time));
  else if (next === 'live') {
    if (was === 'lost' || was === 'away') announce([body.dataset.back]);
    offer();
  }
}
function offer() {
  if (state !== 'live') return;
  say(held ? body.dataset[held.isNewer ? 'newer' : 'changed'] : '', held && showHeld);
}
function showHeld() {
  if (!held) return;
  const { fresh } = held;
  held = null;
  if (bar.contains(document.activeElement)) byId('main').focus({ preventScroll: true });
  offer();
  announce(new Patch(fresh, true).run().news);
}
function announce(news) {
  if (news.length) byId('announce').textContent = news.join('. ');
}
function show(fresh) {
  const isIdle = performance.now() - touchedAt > IDLE_MS;
  const patch = new Patch(fresh, false).run();
  held = patch.isHeld || patch.isNewer ? patch : null;
  announce(patch.news);
  knownAt = new Date();
  if (held && isIdle && !isInUse(byId('main'))) showHeld(); else if (bar.childElementCount !== (held ? 1 : 0)) offer();
}

// Fetching. A slow page is fetched less often, so a page never loads the database.
const FETCH_MS = 6_000;
const RETRY_MS = 1_000;
const SILENT_MS = 2_500;
const POLL_MS = 2_000;
// Longer than viewers share what was read, so the page shows what the event is about.
const EVENT_MS = 600;
let timer = 0;
let due = 0;
let minGap = 0;
let fetchedAt = 0;
async function refresh() {
  const began = performance.now();
  try {
    const response = await fetch(location.href, { headers: { accept: 'text/html', 'ichido-refresh': '1' }, signal: AbortSignal.timeout(FETCH_MS) });
    const text = await response.text();
    if (response.redirected && new URL(response.url).pathname.endsWith('/sign-in')) location.reload();
    else if (response.status >= 500) {
      setState('away');
      schedule(RETRY_MS);
    } else if ('outage' in body.dataset) location.reload();
    else {
      if (state === 'lost') retryAt = 0;
      if (!isStoreAway) setState('live');
      if ('live' in body.dataset && response.ok) show(new DOMParser().parseFromString(text, 'text/html'));
      connect();
      // What changes without events. Pages ask at the same times, and share the reads.
      const every = document.querySelector('[data-every]')?.dataset.every;
      if (every) schedule(every - Date.now() % every);
    }
  } catch {
    setState('lost');
    schedule(RETRY_MS);
  }
  fetchedAt = performance.now();
  minGap = Math.min(10 * (fetchedAt - began), 30_000);
}
function schedule(wait, isUrgent = false) {
  if (document.hidden) return;
  const isWell = !isUrgent && (state === 'live' || state === 'off');
  const now = performance.now();
  const at = isWell ? Math.max(now + wait, fetchedAt + minGap) : now + wait;
  if (timer && due <= at) return;
  clearTimeout(timer);
  due = at;
  timer = setTimeout(() => {
    timer = 0;
    refresh();
  }, at - now);
}

// The stream. It beats every second; if it is silent, the server is gone, or a proxy between holds it back, and then the page asks.
const MAX_RETRY_MS = 15_000;
let source = null;
let heardAt = 0;
let watch = 0;
let isStoreAway = false;
let retryMs = RETRY_MS;
let retryAt = 0;
function connect() {
  if (document.hidden || source || performance.now() < retryAt) return;
  heardAt = performance.now();
  source = new EventSource(base + (body.dataset.live ?? '/live'));
  const heard = () => { heardAt = performance.now(); };
  // The whole state follows at once, if the store responds.
  source.addEventListener('open', () => {
    heard();
    isStoreAway = false;
    retryMs = RETRY_MS;
  });
  source.addEventListener('beat', heard);
  source.addEventListener('store', (event) => {
    heard();
    isStoreAway = !JSON.parse(event.data).available;
    if (isStoreAway) setState('away'); else schedule(0);
  });
  for (const kind of ['queues', 'nodes', 'alerts', 'actions', 'message', 'destinations', 'reset']) {
    source.addEventListener(kind, () => {
      heard();
      if ('live' in body.dataset || state !== 'live') schedule(EVENT_MS);
    });
  }
  source.addEventListener('error', () => {
    // A server that stops or restarts closes the stream, and one that has too many listeners refuses it. Asking tells which.
    const wasOpen = retryMs === RETRY_MS;
    disconnect();
    schedule(0, wasOpen);
  });
}
function disconnect() {
  if (!source) return;
  source.close();
  source = null;
  retryAt = performance.now() + retryMs;
  retryMs = Math.min(2 * retryMs, MAX_RETRY_MS);
}
// Without a stream, a file tells whether the server lives: a page may also wait for the store.
let isProbing = false;
async function probe() {
  if (isProbing) return;
  isProbing = true;
  await fetch(find('link[rel=icon]')[0].href, { method: 'HEAD', cache: 'no-store', signal: AbortSignal.timeout(SILENT_MS) })
    .catch(() => setState('lost'));
  isProbing = false;
}
function check() {
  if (document.hidden || performance.now() - heardAt < SILENT_MS) return;
  if (source?.readyState === EventSource.OPEN) {
    setState('lost');
    disconnect();
  } else probe();
  schedule(state === 'lost' ? 0 : POLL_MS);
}
function start() {
  if (document.hidden) {
    disconnect();
    clearInterval(watch);
    clearTimeout(timer);
    timer = 0;
    watch = 0;
    setState('paused');
  } else if (!watch) {
    watch = setInterval(check, 500);
    retryAt = 0;
    connect();
    if (state === 'paused') schedule(0);
  }
}

enliven(document);
find('input[list]').forEach(suggest);
if ('outage' in body.dataset) setState('away');
if ('watch' in body.dataset || 'outage' in body.dataset) {
  document.addEventListener('visibilitychange', start);
  addEventListener('pagehide', disconnect);
  // Going back may show the page as it was.
  addEventListener('pageshow', (event) => {
    if (!event.persisted) return;
    const box = byId('q');
    if (box) box.value = new URL(location.href).searchParams.get('q') ?? '';
    retryAt = 0;
    connect();
    schedule(0);
  });
  start();
}
