// The rows of the list and the texts of the page, without a browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { intentOf, items, urlOf } from '../page/state.js';

const SEEN = { q: '', isOnline: true };
const entry = (over) => ({ id: 1, intent: intentOf('https://a.example/', 'web', ''), state: 'saving', createdAt: 0, answer: null, isHeld: false, canRetry: false, nextAttemptAt: null, ...over });
const bookmark = (over) => ({
  id: 'b', url: 'https://a.example/', title: null, summary: null, summary_by: null, status: 'done', error_code: null, error_message: null, can_retry: false,
  job_type: null, retry_at: null, created_at: '2026-11-17T00:00:00Z', ...over,
});

test('a save that the server has not answered is shown as saving', () => {
  // The queue calls it `processing` when the server said that the request is in flight.
  const [inFlight] = items([], [entry({ state: 'processing' })], SEEN);
  assert.deepEqual([inFlight.state, inFlight.text, inFlight.steps], ['saving', { kind: 'sending' }, []]);
  const [waiting] = items([], [entry({})], SEEN);
  assert.deepEqual([waiting.state, waiting.text, waiting.steps], ['saving', { kind: 'waiting' }, ['discard']]);
});

test('each status of a bookmark has its text and its steps', () => {
  const shown = (over) => (({ state, text, steps }) => [state, text, steps])(items([bookmark(over)], [], SEEN)[0]);
  assert.deepEqual(shown({ status: 'processing', job_type: 'extraction' }), ['processing', { kind: 'reading' }, ['remove']]);
  assert.deepEqual(shown({ status: 'processing', job_type: 'llm_processing' }), ['processing', { kind: 'summarising' }, ['remove']]);
  const retrying = { status: 'retrying', error_code: 'page_busy', can_retry: true, retry_at: '2026-11-17T00:00:01Z' };
  assert.deepEqual(shown(retrying), ['retrying', { kind: 'retryAt', at: Date.parse(retrying.retry_at), code: 'page_busy' }, ['retry', 'remove']]);
  assert.deepEqual(shown({ status: 'failed', error_code: 'page_refused', error_message: 'No' }), ['failed', { kind: 'error', code: 'page_refused', message: 'No' }, ['remove']]);
  assert.deepEqual(shown({ summary: 'A fox.', summary_by: 'model' }), ['done', { kind: 'summary', summary: 'A fox.', by: 'model' }, ['remove']]);
});

test('one link from two places is two requests', () => {
  const [web, share] = [intentOf('https://a.example/', 'web', ''), intentOf('https://a.example/', 'share', 'A page')];
  assert.notEqual(web, share);
  for (const intent of [web, share]) assert.equal(urlOf(entry({ intent })), 'https://a.example/');
});

test('sharing to the page is promised on Android alone', async () => {
  // Safari on an iPhone ignores the share target of a manifest.
  let chosen = 'en';
  globalThis.localStorage = { getItem: () => chosen };
  const { words } = await import('../page/words.js');
  const promises = [['en', /^On Android, .* share .*\. An iPhone cannot share to web pages: use a shortcut/], ['ja', /^Androidでは、.*「共有」.*。iPhoneの「共有」はウェブページに対応していない.*「ショートカット」/]];
  for (const [language, promise] of promises) {
    chosen = language;
    assert.match(words().phoneHow, promise);
  }
});
