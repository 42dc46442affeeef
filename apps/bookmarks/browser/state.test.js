// The rows of the list and the texts of the page, without a browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { has, searchOf } from '../page/find.js';
import { Shelf } from '../page/shelf.js';
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
  const steps = ['edit', 'remove'];
  assert.deepEqual(shown({ status: 'processing', job_type: 'extraction' }), ['processing', { kind: 'reading', attempt: null }, steps]);
  const second = { status: 'processing', job_type: 'llm_processing', attempt: 2, max_attempts: 3 };
  assert.deepEqual(shown(second), ['processing', { kind: 'summarising', attempt: { attempt: 2, of: 3 } }, steps]);
  const retrying = { status: 'retrying', error_code: 'page_busy', can_retry: true, retry_at: '2026-11-17T00:00:01Z' };
  const next = { attempt: 2, of: 3 };
  const waits = { kind: 'retryAt', at: Date.parse(retrying.retry_at), code: 'page_busy', attempt: next };
  assert.deepEqual(shown({ ...retrying, attempt: 1, max_attempts: 3 }), ['retrying', waits, ['retry', ...steps]]);
  const refused = { status: 'failed', error_code: 'page_refused', error_message: 'No', can_retry: true };
  assert.deepEqual(shown(refused), ['failed', { kind: 'noSummary', code: 'page_refused', message: 'No' }, ['retry', ...steps]]);
  assert.deepEqual(shown({ summary: 'A fox.', summary_by: 'model' }), ['done', { kind: 'summary', summary: 'A fox.', by: 'model' }, steps]);
});

test('a save that failed has the code of the problem, and no text of the server', () => {
  const failed = (answer) => items([], [entry({ state: 'failed', answer })], SEEN)[0].text;
  const refused = (body) => ({ status: 400, body });
  assert.deepEqual(failed(refused('{"code":"url_refused","detail":"`url` cannot be saved"}')), { kind: 'error', code: 'url_refused' });
  assert.deepEqual(failed(refused('<html>')), { kind: 'error', code: 'refused' });
  for (const answer of [null, { status: 502, body: '{"code":"url_refused"}' }]) assert.deepEqual(failed(answer), { kind: 'error', code: 'lost' });
});

test('the search on this device finds addresses and tags as the server does', () => {
  const page = (url, tags = []) => bookmark({ url, tags });
  for (const [url, q, isFound] of [
    ['https://example.test/', 'https://example.test', true],
    ['https://example.test', 'http://www.example.test/', true],
    ['https://www.example.test/a', 'example.test/a/', true],
    ['https://example.test/a', 'https://example.test/a#part', true],
    ['http://localhost:4811/articles/sourdough', 'localhost:4811/articles/sourdough', true],
    ['http://127.0.0.1:4811/missing', '127.0.0.1:4811/missing', true],
    ['http://127.0.0.1:4811/missing', '127.0.0.1', true],
    ['https://a.example/%E6%97%A5', 'https://a.example/日', true],
    ['https://a.example/%E6%97%A5', 'https://a.example/%E6%97%A5', true],
    ['https://a.example/1/2', '1/2', true],
    ['https://a.example/', 'https', false],
    ['https://a.example/', 'https://b.example/', false],
  ]) assert.equal(has(page(url), q), isFound, `${q} and ${url}`);
  const tagged = page('https://a.example/', ['food and drink', 'garden']);
  for (const [q, isFound] of [
    [searchOf('food and drink'), true],
    [searchOf('garden'), true],
    [searchOf('gard'), false],
    ['#gard', true],
    ['a.example #gard', true],
    ['#gard a.example', false],
    ['＃Garden a.example', true],
    ['#', true],
  ]) assert.equal(has(tagged, q), isFound, q);
});

test('one link from two places is two requests', () => {
  const [web, share] = [intentOf('https://a.example/', 'web', ''), intentOf('https://a.example/', 'share', 'A page')];
  assert.notEqual(web, share);
  for (const intent of [web, share]) assert.equal(urlOf(entry({ intent })), 'https://a.example/');
});

test('a save that waits has the title that the page had', () => {
  const [titled] = items([], [entry({ intent: intentOf('https://a.example/', 'share', 'A page: with words') })], SEEN);
  const [bare] = items([], [entry({ intent: intentOf('https://a.example/%E6%97%A5', 'web', '') })], SEEN);
  assert.deepEqual([titled.title, bare.title], ['A page: with words', 'a.example/日']);
});

test('characters that reorder text are never shown', () => {
  const title = 'A \u202egpj.exe\u2066';
  const seen = items([bookmark({ title })], [entry({ intent: intentOf('https://a.example/', 'share', title) })], SEEN);
  assert.deepEqual(seen.map((item) => item.title), ['A gpj.exe', 'A gpj.exe']);
});

test('new bookmarks on the first page push none out of the list', () => {
  const shelf = new Shelf([]);
  const at = (minute) => bookmark({ id: `b${minute}`, created_at: new Date(Date.UTC(2026, 10, 17, 0, minute)).toISOString() });
  const page = (...minutes) => ({ bookmarks: minutes.map(at), next: 'x' });
  shelf.read(page(5, 4), '');
  shelf.readMore(page(3, 2));
  shelf.read(page(7, 6), '');
  assert.deepEqual(shelf.shown.map(({ id }) => id), ['b7', 'b6', 'b5', 'b4', 'b3', 'b2']);
  // One that should be on the page and is not was deleted elsewhere.
  shelf.read({ bookmarks: [at(7), at(4)], next: 'x' }, '');
  assert.deepEqual(shelf.shown.map(({ id }) => id), ['b7', 'b4', 'b3', 'b2']);
});

test('sharing to the page is promised on Android alone', async () => {
  // Safari on an iPhone ignores the share target of a manifest.
  let chosen = 'en';
  globalThis.localStorage = { getItem: () => chosen };
  const { words } = await import('../page/words.js');
  for (const [language, android, iphone] of [
    ['en', /other apps can then share/i, /^An iPhone cannot share to web pages\. Use a shortcut/],
    ['ja', /「共有」から保存できます/, /^iPhoneの「共有」はウェブページに対応していません。.*「ショートカット」/],
  ]) {
    chosen = language;
    assert.match(words().androidHow, android);
    assert.match(words().iphoneHow, iphone);
    assert.doesNotMatch(words().iphoneHow, /home screen|ホーム画面/);
  }
});
