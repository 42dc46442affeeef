// @ts-check
// The service worker: the page opens offline, and waiting saves are sent when the browser reports that the network is back.

import { drainOnSync } from './ichido/ichido.js';
import { me } from './api.js';
import { openQueue } from './saves.js';

/** @type {any} */
const worker = self;
const CACHE = 'shell';
/** All files of the pages. They contain no personal data. */
const SHELL = [
  '/', '/save', '/sign-in', '/app.css', '/list.css', '/panel.css',
  ...[
    'address', 'api', 'app', 'bookmarklet', 'editor', 'find', 'keys', 'menu', 'messages', 'person', 'place', 'press', 'removal', 'save', 'saves', 'shelf', 'sign-in', 'state',
    'view', 'words',
  ].map((name) => `/${name}.js`),
  '/icon.svg', '/icon-180.png', '/manifest.webmanifest',
  ...['client', 'entry', 'ichido', 'key', 'next', 'outside', 'queue', 'store', 'sw', 'wire'].map((name) => `/ichido/${name}.js`),
];

worker.addEventListener('install', (/** @type {any} */ event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(SHELL)).then(() => worker.skipWaiting()));
});
worker.addEventListener('activate', (/** @type {any} */ event) => event.waitUntil(worker.clients.claim()));

// The network first, so nobody sees an old page; offline, the copy.
worker.addEventListener('fetch', (/** @type {any} */ event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== 'GET' || url.origin !== location.origin || !SHELL.includes(url.pathname)) return;
  event.respondWith(
    fetch(event.request).then(
      async (answer) => {
        if (answer.ok) await (await caches.open(CACHE)).put(url.pathname, answer.clone());
        return answer;
      },
      async (error) => {
        const kept = await caches.match(url.pathname);
        if (kept) return kept;
        throw error;
      },
    ),
  );
});

drainOnSync(async () => {
  const person = await me().catch(() => null);
  return person === null ? null : openQueue(person);
});
