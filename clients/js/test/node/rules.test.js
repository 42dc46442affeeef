// Checks the page for authors of other clients, `docs/offline-queue-rules.md`, against the shared table and the queue's limits.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { CLIENT_RETRY, MAX_QUEUE_RETRY_AFTER_MS, MAX_UNANSWERED_WAIT_MS } from '../../next.js';

const read = (path) => readFileSync(new URL(path, import.meta.url), 'utf8');
const table = JSON.parse(read('../decisions.json'));
const page = read('../../../../docs/offline-queue-rules.md');

/** The cells of the rows below a head. */
function rowsBelow(head) {
  const [, below] = page.split(`| ${head} |\n`);
  assert.ok(below, `no table with the head ${head}`);
  const rows = below.split('\n').slice(1);
  return rows.slice(0, rows.findIndex((row) => !row.startsWith('|'))).map((row) => row.split('|').slice(1, -1).map((cell) => cell.trim()));
}

const STEPS = { done: 'done', again: 'retry', refused: 'refused', give_up: 'give up' };

/** A case of the shared table, by its name in backticks. */
function caseOf(cell) {
  const found = table.cases.find(({ name }) => cell === `\`${name}\``);
  assert.ok(found, `decisions.json has no case ${cell}`);
  return { ...table.usual, ...found };
}

/** What the shared table says about a case: the step, and the effect unless it is done. */
function stepOf(one) {
  const kind = Object.keys(STEPS).find((kind) => kind in one);
  const isPoll = kind === 'again' && one.again.failed === one.before.failed;
  return [isPoll ? 'poll' : STEPS[kind], one[kind].effect ?? ''];
}

test('the rules for other clients have every status as in the shared table', () => {
  const written = rowsBelow('status | step | effect');
  const shared = table.statuses.map(({ from, to, next, effect }) => [from === to ? `${from}` : `${from}–${to}`, STEPS[next], effect ?? '']);
  assert.deepEqual(written, shared);
});

test('the rules for other clients decide each case as the shared table does', () => {
  const rows = rowsBelow('what happened | step | effect | case in `decisions.json`');
  for (const [what, step, effect, name] of rows) assert.deepEqual([step, effect], stepOf(caseOf(name)), what);
  const listed = rows.map(([, , , name]) => caseOf(name));
  const faults = (cases) => [...new Set(cases.map(({ seen }) => seen.fault).filter(Boolean))].sort();
  assert.deepEqual(faults(listed), faults(table.cases), 'every fault is explained');
  assert.deepEqual([...new Set(rows.map(([, step]) => step))].sort(), ['done', 'give up', 'poll', 'refused', 'retry'], 'and every step');
});

test('the rules for other clients have the waits and limits of the queue', () => {
  for (const [after, wait, name] of rowsBelow('after | wait | case in `decisions.json`')) {
    assert.equal(wait, `${caseOf(name).again.wait_ms / 1000} s`, after);
  }
  for (const text of [
    `An entry has ${table.usual.attempts} attempts.`,
    `a random 0 to ${CLIENT_RETRY.jitter * 100} % to`,
    `up to ${MAX_UNANSWERED_WAIT_MS / 1000} s.`,
    `up to ${MAX_QUEUE_RETRY_AFTER_MS / 3_600_000} hours`,
  ]) assert.ok(page.includes(text), text);
});

test('the rules for other clients have the states of an entry', () => {
  const phases = /@property \{([^}]*)\} phase/.exec(read('../../entry.js'))?.[1].split(' | ');
  const states = rowsBelow('state | meaning | next').map(([state]) => state.replaceAll('`', "'"));
  assert.deepEqual(states, phases);
});
