// Makes the dashboard's pages livelier: live updates, keys, copying. Everything else works without it.

const { base, live, lost, copied, newer } = document.body.dataset;
const notice = document.getElementById('notice');
const find = (selector, root = document) => [...root.querySelectorAll(selector)];

// Copying. Without a secure connection a browser has no clipboard, so the text is selected and copied the old way.
async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(source.textContent);
  } catch {
    getSelection().selectAllChildren(source);
    document.execCommand('copy');
  }
  const name = button.textContent;
  button.textContent = copied;
  setTimeout(() => { button.textContent = name; }, 1500);
}
for (const button of find('button.copy')) {
  button.hidden = false;
  button.addEventListener('click', () => copy(button));
}

// A time's title also says it in the person's own time zone.
function localTimes(root) {
  for (const time of find('time[datetime]', root)) {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.getTime())) time.title = `${time.title.split(' · ')[0]} · ${at.toLocaleString()}`;
  }
}
localTimes(document);

// Keys. No single key changes anything, and none works while a person writes.
let went = 0;
function go(key) {
  const link = document.querySelector(`nav a[data-key="${CSS.escape(key)}"]`);
  if (link) location.href = link.href;
}
function step(by) {
  const links = find('tbody[data-rows] tr').map((row) => row.querySelector('a')).filter(Boolean);
  const at = links.findIndex((link) => link.closest('tr').contains(document.activeElement));
  const to = at < 0 && by < 0 ? links.length - 1 : at + by;
  links[Math.min(Math.max(to, 0), links.length - 1)]?.focus();
}
document.addEventListener('keydown', (event) => {
  const writes = event.target.closest('input, textarea, select, [contenteditable]');
  if (event.key === 'Escape') {
    for (const term of find('details.term[open]')) term.open = false;
    if (writes) writes.blur();
    return;
  }
  if (writes || event.ctrlKey || event.metaKey || event.altKey) return;
  if (Date.now() - went < 1500) {
    went = 0;
    go(event.key);
  } else if (event.key === 'g') {
    went = Date.now();
  } else if (event.key === '/') {
    const box = document.getElementById('q');
    event.preventDefault();
    if (box) box.select(); else location.href = `${base}/messages`;
  } else if (event.key === '?') {
    location.href = `${base}/help`;
  } else if (event.key === 'j' || event.key === 'k') {
    event.preventDefault();
    step(event.key === 'j' ? 1 : -1);
  }
});
// A click elsewhere closes an explanation.
document.addEventListener('click', (event) => {
  for (const term of find('details.term[open]')) if (!term.contains(event.target)) term.open = false;
});

// Live updates. The server renders: after an event the page is fetched again, and only the parts that differ are replaced, by id. A part
// with the focus, a selection or an open explanation stays as it is until the person has left it.
function isInUse(part) {
  const selection = getSelection();
  return part.contains(document.activeElement) || part.querySelector('details[open]') !== null
    || (!selection.isCollapsed && part.contains(selection.anchorNode));
}
function patch(fresh) {
  for (const part of find('[data-part][id]')) {
    const next = fresh.getElementById(part.id);
    if (next && !part.isEqualNode(next) && !isInUse(part)) {
      const node = document.importNode(next, true);
      localTimes(node);
      part.replaceWith(node);
    }
  }
  const nav = document.querySelector('.top nav');
  const freshNav = fresh.querySelector('.top nav');
  if (nav && freshNav && nav.innerHTML !== freshNav.innerHTML && !isInUse(nav)) nav.replaceWith(document.importNode(freshNav, true));
  const first = document.querySelector('tbody[data-rows] tr')?.id;
  const freshFirst = fresh.querySelector('tbody[data-rows] tr')?.id;
  if (first && freshFirst && first !== freshFirst) offerNewer();
}
function offerNewer() {
  const link = document.createElement('a');
  link.href = location.href;
  link.textContent = newer;
  notice.className = 'notice ok';
  notice.replaceChildren(link);
  notice.hidden = false;
}
let isLost = false;
function setLost(now) {
  if (now === isLost) return;
  isLost = now;
  notice.className = 'notice';
  notice.textContent = now ? lost : '';
  notice.hidden = !now;
}
let timer = 0;
async function refresh() {
  timer = 0;
  try {
    const response = await fetch(location.href, { headers: { accept: 'text/html' }, signal: AbortSignal.timeout(5000) });
    if (response.redirected && new URL(response.url).pathname.endsWith('/sign-in')) location.reload();
    if (response.status >= 500) throw new Error(response.statusText);
    patch(new DOMParser().parseFromString(await response.text(), 'text/html'));
    setLost(false);
    // Not every step of a bulk operation is an event.
    if (!document.hidden && document.querySelector('[data-running]')) schedule(2000);
  } catch {
    setLost(true);
    schedule(2000);
  }
}
function schedule(wait) {
  if (!timer) timer = setTimeout(refresh, wait);
}

let source = null;
function connect() {
  if (!live || document.hidden || source) return;
  source = new EventSource(base + live);
  source.onopen = () => schedule(0);
  source.onerror = () => {
    // The browser tries again by itself, unless the server refused.
    if (source?.readyState === EventSource.CLOSED) {
      disconnect();
      setTimeout(connect, 3000);
    }
    schedule(500);
  };
  for (const kind of ['queues', 'nodes', 'alerts', 'actions', 'message', 'destinations']) {
    source.addEventListener(kind, () => schedule(250));
  }
}
function disconnect() {
  source?.close();
  source = null;
}
document.addEventListener('visibilitychange', () => {
  if (document.hidden) disconnect(); else connect();
});
connect();
