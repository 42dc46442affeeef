// The service worker under test.
import { drainOnSync, Queue } from '/ichido.js';

drainOnSync(() => Queue.open({ identity: 'ann' }));
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
