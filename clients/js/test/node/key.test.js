import assert from 'node:assert/strict';
import { test } from 'node:test';

import { newKey } from '../../node.js';
import { checkKey, echoOf, keyField, uuid } from '../../key.js';

test('a new key is a unique UUID', () => {
  const keys = Array.from({ length: 1000 }, newKey);
  assert.equal(new Set(keys).size, 1000);
  for (const key of keys) assert.match(key, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

test('without randomUUID a key uses random bytes, never Math.random', (t) => {
  const real = globalThis.crypto;
  t.mock.method(Math, 'random', () => assert.fail('a key is not made of Math.random'));
  const plain = { getRandomValues: (bytes) => real.getRandomValues(bytes) };
  const saved = Object.getOwnPropertyDescriptor(globalThis, 'crypto');
  t.after(() => Object.defineProperty(globalThis, 'crypto', saved));
  Object.defineProperty(globalThis, 'crypto', { value: plain, configurable: true });
  assert.match(newKey(), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.notEqual(newKey(), newKey());
  Object.defineProperty(globalThis, 'crypto', { value: undefined, configurable: true });
  assert.throws(newKey, /getRandomValues is missing/);
});

test('sixteen bytes are formatted as a UUID of version 4', () => {
  assert.equal(uuid(new Uint8Array(16).fill(0xff)), 'ffffffff-ffff-4fff-bfff-ffffffffffff');
  assert.equal(uuid(new Uint8Array(16)), '00000000-0000-4000-8000-000000000000');
});

test('an invalid key is refused and not shown', () => {
  for (const wrong of ['', 'a b', 'ä-secret', 'a\n', undefined, 7, 'x'.repeat(256)]) {
    assert.throws(() => checkKey(wrong), (error) => error instanceof TypeError && !error.message.includes('secret'), `${wrong}`);
  }
  assert.equal(checkKey('x'.repeat(255)).length, 255);
});

test('an echoed key is recognised in both spellings', () => {
  const echo = (fields) => echoOf('k"1', new Headers(fields));
  assert.equal(echo({}), 'absent');
  assert.equal(echo({ 'Idempotency-Key': 'k"1' }), 'same');
  assert.equal(echo({ 'X-Idempotency-Key': '"k\\"1"' }), 'same');
  assert.equal(echo({ 'Idempotency-Key': 'k2' }), 'other');
  assert.equal(echo({ 'Idempotency-Key': 'k"1', 'X-Idempotency-Key': 'k2' }), 'other');
  assert.equal(echo([['Idempotency-Key', 'k"1'], ['Idempotency-Key', 'k"1']]), 'other', 'two lines are no key');
  assert.equal(echo({ 'Idempotency-Key': '"k' }), 'other');
  assert.equal(echoOf(null, new Headers({ 'Idempotency-Key': 'k2' })), 'absent', 'a read has no key');
});

test('a key that begins with a quote is sent as a structured field', () => {
  assert.equal(keyField('"k'), '"\\"k"');
  assert.equal(keyField('k"'), 'k"');
});
