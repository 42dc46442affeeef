// The client with a fake network and clock.
// The numbered requirements are listed in ../README.md.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Client } from '../../node.js';
import { answered, lost, World } from './world.js';

const ORDER = { url: 'https://shop.example/orders', key: 'order-1', body: { qty: 1 } };

async function sent(world, settings = {}, action = ORDER, options = {}) {
  const client = new Client({ outside: world.outside, ...settings });
  return world.run(client.send(action, options));
}

const bytes = (request) => new TextDecoder().decode(request.body);

// Requirement (9) Clock, random numbers and fetch are injected: see world.js.
test('every attempt has the same key and bytes, and its number', async () => {
  const world = new World(lost(), answered(503), answered(201));
  const outcome = await sent(world);
  assert.deepEqual([outcome.kind, outcome.attempts, outcome.answer.status], ['done', 3, 201]);
  assert.deepEqual(world.waited, [1000, 2000]);
  assert.deepEqual(world.requests.map(({ headers }) => headers.get('ichido-attempt')), ['1; manual', '2; auto', '3; auto']);
  for (const request of world.requests) {
    assert.equal(request.headers.get('idempotency-key'), 'order-1');
    assert.equal(request.headers.get('content-type'), 'application/json');
    assert.equal(bytes(request), '{"qty":1}');
    assert.equal(request.redirect, 'manual');
    assert.equal(request.method, 'POST');
  }
});

test('attempt numbers continue, and automatic attempts are marked', async () => {
  const world = new World(answered(503), answered(200));
  await sent(world, {}, { ...ORDER, cause: 'auto', triesBefore: 3 });
  assert.deepEqual(world.requests.map(({ headers }) => headers.get('ichido-attempt')), ['4; auto', '5; auto']);
});

test('a hop adds itself with its own id for each request', async () => {
  const world = new World(answered(503), answered(200));
  await sent(world, { hop: 'browser' });
  const hops = world.requests.map(({ headers }) => headers.get('ichido-hops'));
  assert.match(hops[0], /^browser;t=1800000000000;r="[0-9a-f-]{36}"$/);
  assert.match(hops[1], /^browser;t=1800000001000;r="[0-9a-f-]{36}"$/);
  assert.notEqual(hops[0].slice(-38), hops[1].slice(-38));
  const program = new World(answered(200));
  await sent(program);
  assert.equal(program.requests[0].headers.get('ichido-hops'), null, 'Node is not a browser');
});

test('other APIs get the key and none of our headers', async () => {
  for (const profile of ['ietf', 'stripe']) {
    const busy = answered(409, {}, JSON.stringify({ error: { code: 'idempotency_key_in_use' } }));
    const world = new World(busy, answered(200));
    const outcome = await sent(world, { profile, hop: 'browser' });
    assert.deepEqual([outcome.kind, outcome.attempts], ['done', 2], 'in flight there is 409');
    const names = Array.from(world.requests[0].headers.keys());
    assert.deepEqual(names, ['content-type', 'idempotency-key']);
  }
});

test('the client gives up after three failures, and the action may be sent again', async () => {
  const world = new World(answered(503, {}, '{"detail":"the store is away"}'));
  const outcome = await sent(world);
  assert.deepEqual([outcome.kind, outcome.why, outcome.effect, outcome.attempts], ['gave_up', 'attempts_spent', 'unknown', 3]);
  assert.equal(outcome.last.json().detail, 'the store is away');
});

test('a refusal ends the action at once', async () => {
  const world = new World(answered(422));
  const outcome = await sent(world);
  assert.deepEqual([outcome.kind, outcome.effect, outcome.attempts], ['refused', 'not_done', 1]);
});

test('a replay is recognised by its header in both spellings', async () => {
  for (const name of ['Idempotency-Replayed', 'Idempotent-Replayed']) {
    const outcome = await sent(new World(answered(201, { [name]: 'true' })));
    assert.ok(outcome.answer.isReplay, name);
  }
  assert.ok(!(await sent(new World(answered(201)))).answer.isReplay);
});

test('an action in flight is polled with the same key until it ends', async () => {
  const busy = answered(202, { 'Idempotency-Status': 'processing', 'Retry-After': '5' });
  const world = new World(busy, busy, busy, busy, busy, answered(201));
  const outcome = await sent(world);
  assert.deepEqual([outcome.kind, outcome.attempts], ['done', 6]);
  assert.deepEqual(world.waited, [5000, 5000, 5000, 5000, 5000]);
});

test('a too long Retry-After gives up at once and says when to retry', async () => {
  const world = new World(answered(429, { 'Retry-After': '3600' }));
  const outcome = await sent(world);
  assert.deepEqual([outcome.why, outcome.comeBackAt, outcome.effect], ['asked_to_wait', world.time + 3_600_000, 'not_done']);
  assert.match(outcome.message, /a later retry: not before 2027-01-15T09:00:00/);
  assert.deepEqual(world.waited, []);
});

test('an attempt without a response times out, and all end within the total timeout', async () => {
  const world = new World('silence');
  const begun = world.time;
  const outcome = await sent(world, { attemptTimeoutMs: 4000, totalTimeoutMs: 10_000 });
  assert.deepEqual([outcome.kind, outcome.why, outcome.effect, outcome.attempts], ['gave_up', 'out_of_time', 'unknown', 2]);
  assert.deepEqual(world.waited, [4000, 1000, 4000], 'the third attempt would be at 11 s');
  assert.equal(world.time - begun, 9000);
});

test('a state-changing request without a key is not retried, and says why', async () => {
  const { key, ...unkeyed } = ORDER;
  for (const first of [lost(), answered(503)]) {
    const outcome = await sent(new World(first), {}, unkeyed);
    assert.deepEqual([outcome.kind, outcome.why, outcome.effect, outcome.attempts], ['gave_up', 'no_key', 'unknown', 1]);
    assert.match(outcome.message, /no idempotency key.*could repeat the effect/);
  }
  const turnedAway = await sent(new World(answered(429), answered(200)), {}, unkeyed);
  assert.deepEqual([turnedAway.kind, turnedAway.attempts], ['done', 2], 'a 429 did nothing');
});

test('a read is retried without a key', async () => {
  const world = new World(lost(), answered(200, {}, 'here'));
  const client = new Client({ outside: world.outside, baseUrl: 'https://shop.example/' });
  const outcome = await world.run(client.read('/orders/1'));
  assert.deepEqual([outcome.kind, outcome.answer.text(), outcome.attempts], ['done', 'here', 2]);
  assert.equal(world.requests[0].headers.get('idempotency-key'), null);
});

test('retries do not overload a failing server', async () => {
  const world = new World(answered(503));
  const client = new Client({ outside: world.outside });
  const whys = [];
  for (let call = 0; call < 8; call++) whys.push((await world.run(client.send(ORDER))).why);
  assert.deepEqual(whys.slice(0, 5), Array(5).fill('attempts_spent'), 'ten retries are saved up');
  assert.deepEqual(whys.slice(5), Array(3).fill('budget_spent'));
});

test('a response is read up to the limit and keeps its status', async () => {
  const outcome = await sent(new World(answered(201, {}, 'x'.repeat(5000))), { maxResponseBytes: 100 });
  assert.deepEqual([outcome.kind, outcome.answer.isWhole, outcome.answer.body.length], ['done', false, 100]);
  const whole = await sent(new World(answered(201, {}, 'x'.repeat(100))), { maxResponseBytes: 100 });
  assert.ok(whole.answer.isWhole);
});

test('credentials are fetched before each attempt', async () => {
  const world = new World(answered(503), answered(200));
  let asked = 0;
  await sent(world, { authorize: async () => ({ Authorization: `Bearer ${++asked}` }) });
  assert.deepEqual(world.requests.map(({ headers }) => headers.get('authorization')), ['Bearer 1', 'Bearer 2']);
});

test('a stopped action reports what is known about its effect', async () => {
  const stop = new AbortController();
  const world = new World('silence');
  const running = new Client({ outside: world.outside }).send(ORDER, { signal: stop.signal });
  setImmediate(() => stop.abort());
  const outcome = await running;
  assert.deepEqual([outcome.kind, outcome.why, outcome.effect, outcome.attempts], ['gave_up', 'stopped', 'unknown', 1]);
  const never = await new Client({ outside: world.outside }).send(ORDER, { signal: stop.signal });
  assert.deepEqual([never.why, never.effect, never.attempts], ['stopped', 'not_done', 0]);
  assert.equal(world.requests.length, 1);
});

test('a response for another key is not an outcome', async () => {
  const outcome = await sent(new World(answered(201, { 'Idempotency-Key': 'order-2' })));
  assert.deepEqual([outcome.kind, outcome.why, outcome.effect], ['gave_up', 'another_key', 'unknown']);
});

test('an invalid request is refused with the cause and the fix', async () => {
  const client = new Client();
  const refused = (action, words) => assert.rejects(client.send(action), (error) => error instanceof TypeError && words.test(error.message));
  await refused({ ...ORDER, method: 'get' }, /GET changes nothing/);
  await refused({ ...ORDER, url: '/orders' }, /pass an absolute URL, or set baseUrl/);
  await refused({ ...ORDER, url: 'https://ann:secret@shop.example/' }, /no user name or password/);
  await refused({ ...ORDER, url: 'file:///etc/passwd' }, /http or https/);
  await refused({ ...ORDER, key: 'a b' }, /not visible ASCII/);
  await refused({ ...ORDER, headers: { 'idempotency-key': 'x' } }, /the client sets the header/);
  await refused({ ...ORDER, headers: { Authorization: 'x' } }, /credential; return it from `authorize`/);
  await refused({ ...ORDER, body: () => {} }, /cannot be written as JSON/);
});

test('all errors in the settings are reported at once', () => {
  const wrong = { attemptTimeoutMs: 0, profile: 'theirs', hop: 'Browser!', retry: { attempts: 0 }, credentials: 'always', maxResponseBytes: NaN };
  assert.throws(() => new Client(wrong), (error) => error.message.split('\n').length === 6);
});

test('bytes are copied, so the caller cannot change an attempt', async () => {
  const world = new World(answered(503), answered(200));
  const body = new TextEncoder().encode('first');
  const client = new Client({ outside: world.outside });
  const running = client.send({ ...ORDER, body });
  body.set(new TextEncoder().encode('other'));
  await world.run(running);
  assert.deepEqual(world.requests.map(bytes), ['first', 'first']);
});
