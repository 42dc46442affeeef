// The state transitions of a queue entry, without a browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { MAX_CLOCK_BACK_MS, entered, hurried, isOpen, isSameRequest, look, released, retried, settled, taken, triesBefore, view } from '../../entry.js';

const NOW = 1_800_000_000_000;
const TERMS = { owner: 'me', isLocked: true, leaseMs: 35_000, holdAfterMs: 1_000_000 };
const REQUEST = { method: 'POST', url: 'https://shop.example/orders', headers: {}, body: new Uint8Array([1]) };
const fresh = (draft = {}) => ({ ...entered(REQUEST, draft, 'k', NOW), id: 1 });
const sending = (entry = fresh(), now = NOW) => look(entry, TERMS, now).entry;
const again = (over = {}) => ({ next: 'again', waitMs: 1000, inFlight: false, attempts: { sent: 1, failed: 1, effect: 'unknown' }, ...over });
const answer = (status) => ({ answer: { status, isReplay: false, body: '' }, message: `${status}` });

test('a claim with number, lease and age is stored before the request leaves', () => {
  const claimed = sending();
  assert.deepEqual([claimed.phase, claimed.sent, claimed.fence, claimed.coveredSince], ['sending', 1, 1, NOW]);
  assert.deepEqual(claimed.lease, { owner: 'me', until: NOW + 35_000, isLocked: true });
  assert.equal(claimed.destination, 'https://shop.example');
  assert.equal(view(claimed).effect, 'unknown', 'a later sender must treat it as sent');
  assert.deepEqual(triesBefore(claimed), { sent: 0, failed: 0, effect: 'not_done' });
});

test('a lease is valid until its end, except for the holder of the lock', () => {
  const claimed = sending();
  const stranger = { ...TERMS, owner: 'you', isLocked: false };
  assert.deepEqual(look(claimed, stranger, NOW + 5_000), { turn: 'wait', ms: 30_000 });
  assert.equal(look(claimed, stranger, NOW + 35_000).turn, 'send');
  assert.equal(look(claimed, { ...TERMS, owner: 'you' }, NOW + 1).turn, 'send', 'under the lock its tab is gone');
  const bare = { ...claimed, lease: { ...claimed.lease, isLocked: false } };
  assert.equal(look(bare, { ...TERMS, owner: 'you' }, NOW + 1).turn, 'wait', 'taken without the lock, its tab may live');
  assert.equal(look(claimed, stranger, NOW - 60_000).turn, 'send', 'a clock that was set back makes nobody wait');
});

test('a request of a dead page counts as sent, and the next attempt is automatic', () => {
  const found = taken(sending());
  assert.deepEqual([found.effect, found.cause], ['unknown', 'auto']);
  assert.equal(taken(fresh()).cause, 'manual');
});

test('an entry waits until it is due, but no longer after the clock is set back', () => {
  const waiting = settled(sending(), again(), answer(503), NOW);
  assert.deepEqual(look(waiting, TERMS, NOW + 400), { turn: 'wait', ms: 600 });
  assert.equal(look(waiting, TERMS, NOW + 1000).turn, 'send');
  assert.equal(look(waiting, TERMS, NOW - 5).turn, 'send');
});

test('an entry is held when its key may be forgotten or its age is unknown', () => {
  const waiting = settled(sending(), again(), answer(503), NOW);
  assert.equal(look(waiting, TERMS, NOW + 999_999).turn, 'send');
  const held = look(waiting, TERMS, NOW + 1_000_000);
  assert.deepEqual([held.turn, held.entry.phase], ['hold', 'held']);
  assert.equal(look(waiting, TERMS, NOW - MAX_CLOCK_BACK_MS - 1).turn, 'hold');
  assert.equal(look(fresh(), TERMS, NOW + 10_000_000).turn, 'send', 'what was never sent does not get old');
  assert.throws(() => retried(held.entry, NOW), /release or discard/);
  const free = released(held.entry, NOW + 1_000_000);
  assert.equal(look(free, TERMS, NOW + 1_000_001).turn, 'send');
  assert.throws(() => released(free, NOW), /only a held entry/);
  assert.equal(look(held.entry, TERMS, NOW).turn, 'pass', 'it does not block others');
});

test('each outcome of an attempt has its own state', () => {
  const shown = (decided, seen) => view(settled(sending(), decided, seen, NOW));
  const state = ({ state, canRetry, errorMessage }) => [state, canRetry, errorMessage];
  assert.deepEqual(state(view(fresh())), ['saving', false, null]);
  assert.deepEqual(state(shown(again(), answer(503))), ['retrying', false, '503']);
  assert.deepEqual(state(shown(again({ inFlight: true }), answer(202))), ['processing', false, null]);
  assert.deepEqual(state(shown({ next: 'done' }, answer(201))), ['done', false, null]);
  assert.deepEqual(state(shown({ next: 'refused', effect: 'not_done' }, answer(422))), ['failed', false, '422']);
  assert.deepEqual(state(shown({ next: 'refused', effect: 'not_done' }, answer(403))), ['failed', true, '403']);
  assert.deepEqual(state(shown({ next: 'give_up', why: 'attempts_spent', effect: 'unknown' }, answer(503))), ['failed', true, '503']);
  assert.equal(view(fresh(), 'nobody is signed in').errorMessage, 'nobody is signed in');
});

test('attempts without a response are counted separately until the first response', () => {
  const silent = settled(sending(), again({ attempts: { sent: 1, failed: 0, effect: 'unknown' } }), { answer: null, message: 'no response' }, NOW);
  assert.deepEqual([silent.unanswered, silent.failed], [1, 0]);
  assert.equal(hurried(silent, NOW + 1).dueAt, NOW + 1, 'when the network is back it is due');
  const busy = settled(sending(silent, NOW + 1000), again(), answer(503), NOW + 1000);
  assert.equal(busy.unanswered, 0);
  assert.equal(hurried(busy, NOW + 1001), null, 'a wait that a server asked for stays');
});

test('a manual retry starts over with the same key', () => {
  const failed = settled(sending(), { next: 'give_up', why: 'attempts_spent', effect: 'unknown' }, answer(503), NOW);
  const next = retried(failed, NOW + 9);
  assert.deepEqual([next.key, next.failed, next.cause, next.dueAt, next.sent], ['k', 0, 'manual', NOW + 9, 1]);
  assert.throws(() => retried(next, NOW), /sent automatically/);
  const refused = settled(sending(), { next: 'refused', effect: 'not_done' }, answer(422), NOW);
  assert.throws(() => retried(refused, NOW), /a retry would not help/);
});

test('a second click is the same action until that was refused', () => {
  const ended = (decided, status) => isOpen(settled(sending(), decided, answer(status), NOW));
  assert.ok(isOpen(fresh()));
  assert.ok(ended({ next: 'give_up', why: 'attempts_spent', effect: 'unknown' }, 503));
  assert.ok(ended({ next: 'refused', effect: 'unknown' }, 409), 'it may have been done');
  assert.ok(!ended({ next: 'refused', effect: 'not_done' }, 422));
  assert.ok(isSameRequest(fresh(), fresh()));
  for (const body of [new Uint8Array([2]), new Uint8Array([1, 2]), new Uint8Array(), null]) {
    assert.ok(!isSameRequest(fresh(), { ...fresh(), body }));
  }
});
