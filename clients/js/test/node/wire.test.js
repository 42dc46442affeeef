// The client on real sockets.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';

import { Client } from '../../node.js';

/** These tests do not wait between attempts. */
const outside = { wait: (ms, signal) => (ms < 30_000 ? Promise.resolve() : new Promise((resolve) => signal.addEventListener('abort', resolve))) };

async function served(t, answer) {
  const requests = [];
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    requests.push({ method: request.method, url: request.url, headers: request.headers, body });
    answer(response, requests.length, server);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const client = new Client({ baseUrl: `http://127.0.0.1:${server.address().port}/`, outside });
  return { requests, client, server };
}

const ORDER = { url: '/orders', key: 'order-1', body: { qty: 1 } };

test('a redirect is not followed, because a POST would become a GET', async (t) => {
  for (const [status, effect] of [[302, 'unknown'], [303, 'unknown'], [307, 'not_done']]) {
    const { requests, client } = await served(t, (response) => response.writeHead(status, { location: '/elsewhere' }).end());
    const outcome = await client.send(ORDER);
    assert.deepEqual([outcome.kind, outcome.answer.status, outcome.effect], ['refused', status, effect]);
    assert.deepEqual(requests.map(({ method, url }) => [method, url]), [['POST', '/orders']]);
  }
});

test('in Node a refused connection proves that nothing was done', async (t) => {
  const { client, server } = await served(t, () => {});
  server.close();
  const outcome = await client.send(ORDER);
  assert.deepEqual([outcome.kind, outcome.why, outcome.effect, outcome.attempts], ['gave_up', 'attempts_spent', 'not_done', 3]);
});

test('an incomplete response is retried with the same key and bytes', async (t) => {
  const { requests, client } = await served(t, (response, count) => {
    if (count === 1) {
      response.writeHead(201, { 'content-length': 100 }).write('half');
      setImmediate(() => response.destroy());
    } else response.writeHead(201, { 'idempotency-replayed': 'true' }).end('whole');
  });
  const outcome = await client.send(ORDER);
  assert.deepEqual([outcome.kind, outcome.attempts, outcome.answer.isReplay, outcome.answer.text()], ['done', 2, true, 'whole']);
  assert.deepEqual(requests.map(({ headers, body }) => [headers['idempotency-key'], headers['ichido-attempt'], body]), [
    ['order-1', '1; manual', '{"qty":1}'],
    ['order-1', '2; auto', '{"qty":1}'],
  ]);
});

test('an endless response is read up to the limit', async (t) => {
  const { client } = await served(t, (response) => {
    response.writeHead(200);
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(65_536)));
    };
    response.on('drain', more);
    more();
  });
  const outcome = await client.send(ORDER);
  assert.deepEqual([outcome.kind, outcome.answer.isWhole, outcome.answer.body.length], ['done', false, 1 << 20]);
});
