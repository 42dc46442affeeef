// Checks the decisions against the table shared with the Rust crate `ichido-client`.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { Budget, BUDGET, decide, decideInQueue, namesOf, NO_ATTEMPTS, MAX_ATTEMPTS, MAX_UNANSWERED_WAIT_MS } from '../../next.js';
import { CLIENT_RETRY } from '../../node.js';
import { Answer } from '../../wire.js';

const table = JSON.parse(readFileSync(new URL('../decisions.json', import.meta.url), 'utf8'));

function answer({ status, headers = [], echo = 'absent', body = '' }) {
  const parsed = new Answer(status, new Headers(headers), new TextEncoder().encode(body), true);
  return { answer: { status, headers: parsed.headers, echo, names: namesOf(status, parsed.json()) } };
}

function decided(partial) {
  const { profile, safety, before, seen, attempts, retry_after_max_ms, left_ms, dice } = { ...table.usual, ...partial };
  const rules = { retry: { ...CLIENT_RETRY, attempts }, retryAfterMaxMs: retry_after_max_ms, profile };
  const moment = { now: table.now_ms, leftMs: left_ms };
  return decide(rules, safety, before, seen.fault ? seen : answer(seen), moment, dice);
}

function wanted({ done, refused, again, give_up }) {
  if (done) return { next: 'done' };
  if (refused) return { next: 'refused', ...refused };
  if (again) {
    const { wait_ms: waitMs, ...attempts } = again;
    return { next: 'again', waitMs, attempts };
  }
  const comeBackAt = give_up.come_back_in_ms === undefined ? null : table.now_ms + give_up.come_back_in_ms;
  return { next: 'give_up', why: give_up.why, comeBackAt, effect: give_up.effect };
}

test('every decision matches the table shared with Rust', () => {
  assert.ok(50 < table.cases.length);
  for (const one of table.cases) {
    const { inFlight, ...found } = decided(one);
    if (found.waitMs !== undefined) found.waitMs = Math.round(found.waitMs);
    assert.deepEqual(found, wanted(one), one.name);
  }
});

test('only faults, 5xx, 408 and 429 are retried', () => {
  const rows = table.statuses.flatMap(({ from, to, ...row }) => Array.from({ length: to - from + 1 }, (_, n) => [from + n, row]));
  assert.deepEqual(rows.map(([status]) => status), Array.from({ length: 800 }, (_, n) => 200 + n), 'each status once');
  for (const [status, row] of rows) {
    const found = decided({ seen: { status } });
    assert.equal(found.next, row.next, `${status}`);
    if (row.effect) assert.equal(found.effect ?? found.attempts.effect, row.effect, `${status}`);
  }
});

test('a wait is never shorter than asked, and at most a tenth longer', () => {
  for (let step = 0; step < 2000; step++) {
    const dice = (step * 0.618034) % 1;
    const seconds = step % 60;
    const { waitMs } = decided({ dice, seen: { status: 503, headers: [['Retry-After', `${seconds}`]] } });
    const floor = Math.max(1000, seconds * 1000);
    assert.ok(floor <= waitMs && waitMs <= floor * 1.1, `${seconds} s, dice ${dice}: ${waitMs}`);
  }
});

test('in the queue only responses use attempts, and waits without a response grow to a limit', () => {
  const rules = { retry: CLIENT_RETRY, retryAfterMaxMs: 0, profile: 'ichido' };
  const waits = [];
  let attempts = NO_ATTEMPTS;
  for (let unanswered = 0; unanswered < 9; unanswered++) {
    const next = decideInQueue(rules, attempts, unanswered, { fault: 'lost' }, 0, 0);
    waits.push(next.waitMs);
    attempts = next.attempts;
  }
  assert.deepEqual(waits, [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000, MAX_UNANSWERED_WAIT_MS]);
  assert.deepEqual(attempts, { sent: 9, failed: 0, effect: 'unknown' });
  for (const [failed, next] of [[1, 'again'], [2, 'give_up']]) {
    assert.equal(decideInQueue(rules, { ...attempts, failed }, 0, answer({ status: 503 }), 0, 0).next, next);
  }
  const last = decideInQueue(rules, { ...attempts, sent: MAX_ATTEMPTS - 1 }, 900, { fault: 'lost' }, 0, 0);
  assert.deepEqual([last.next, last.why], ['give_up', 'attempts_spent']);
});

test('the queue respects Retry-After up to a day', () => {
  const rules = { retry: CLIENT_RETRY, retryAfterMaxMs: 0, profile: 'ichido' };
  const busy = answer({ status: 503, headers: [['Retry-After', '7200']] });
  assert.equal(decideInQueue(rules, NO_ATTEMPTS, 0, busy, 0, 0).waitMs, 7_200_000);
  const forEver = answer({ status: 503, headers: [['Retry-After', '99999999999']] });
  assert.equal(decideInQueue(rules, NO_ATTEMPTS, 0, forEver, 0, 0).why, 'asked_to_wait');
});

test('retries are a share of the calls that succeed', () => {
  const budget = new Budget(BUDGET);
  for (let retry = 0; retry < 10; retry++) assert.ok(budget.spend(), `retry ${retry}`);
  assert.ok(!budget.spend());
  for (let success = 0; success < 4; success++) budget.earn();
  assert.ok(!budget.spend(), 'four successes are not enough');
  budget.earn();
  assert.ok(budget.spend());
  for (let success = 0; success < 1000; success++) budget.earn();
  assert.equal(budget.tokens, BUDGET.capacity);
});
