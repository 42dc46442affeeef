// What a person types, pastes or shares, and the address that is saved of it. Without a browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { addressIn, MAX_AT_ONCE, readable, readAddress, readAddresses } from '../page/address.js';

test('shared text loses the sentence around its address', () => {
  for (const [text, address] of [
    ['Look: https://example.com/a.', 'https://example.com/a'],
    ['see https://example.com/a(b). Nice!', 'https://example.com/a(b)'],
    ['(https://example.com/a)', 'https://example.com/a'],
    ['[https://example.com/a?b=[1]]', 'https://example.com/a?b=[1]'],
    ['“https://example.com/a”, they said', 'https://example.com/a'],
    ['Really? https://example.com/a?!', 'https://example.com/a'],
    ['https://example.com/a…', 'https://example.com/a'],
    ['https://example.com/記事、読んで', 'https://example.com/記事'],
    ['これ「https://example.com/記事」を読んで', 'https://example.com/記事'],
    ['これ（https://example.com/a）。', 'https://example.com/a'],
    ['https://example.com/articleを読んだ', 'https://example.com/article'],
    ['https://example.comを見て', 'https://example.com'],
    ['https://example.com　全角の空白', 'https://example.com'],
    ['https://ja.wikipedia.org/wiki/日本語', 'https://ja.wikipedia.org/wiki/日本語'],
    ['https://日本語.jp/a', 'https://日本語.jp/a'],
    ['Two: https://a.example/ and https://b.example/', 'https://a.example/'],
    ['nothing here', ''],
  ]) assert.equal(addressIn(text), address, text);
});

test('an address is saved as it was typed, and a sentence is not', () => {
  for (const [text, url] of [
    ['https://en.wikipedia.org/wiki/Inc.', 'https://en.wikipedia.org/wiki/Inc.'],
    [' example.com/a ', 'https://example.com/a'],
    ['Look: https://example.com/a.', 'https://example.com/a'],
    ['http://localhost:4190/', 'http://localhost:4190/'],
  ]) assert.deepEqual(readAddress(text), { url, problem: null }, text);
});

test('each text that is not saved has its own reason', () => {
  for (const [text, problem] of [
    ['  ', 'none'],
    ['mailto:me@example.com', 'bad'],
    ['javascript:alert(1)', 'bad'],
    ['two words', 'bad'],
    ['https://user:pw@example.com/', 'credentials'],
    ['https://user@example.com/', 'credentials'],
    [`https://example.com/${'a'.repeat(2_048)}`, 'long'],
  ]) assert.deepEqual(readAddress(text), { url: null, problem }, text);
});

test('every link of a text is saved, up to a limit', () => {
  const many = Array.from({ length: MAX_AT_ONCE + 1 }, (_, place) => `https://a.example/${place}`);
  for (const [text, urls, problem = null] of [
    ['https://a.example/ https://b.example/', ['https://a.example/', 'https://b.example/']],
    ['https://a.example/\nhttps://b.example/\n', ['https://a.example/', 'https://b.example/']],
    ['Two: https://a.example/, and https://b.example/.', ['https://a.example/', 'https://b.example/']],
    ['「https://a.example/」と「https://b.example/」', ['https://a.example/', 'https://b.example/']],
    ['https://a.example/ https://a.example/', ['https://a.example/']],
    ['https://web.archive.example/https://a.example/', ['https://web.archive.example/https://a.example/']],
    ['example.com', ['https://example.com/']],
    ['https://a.example/ https://me@b.example/', [], 'credentials'],
    ['two words', [], 'bad'],
    [many.slice(1).join('\n'), many.slice(1)],
    [many.join('\n'), [], 'many'],
  ]) assert.deepEqual(readAddresses(text), { urls, problem }, text);
});

test('an address is shown decoded, without characters that reorder the text', () => {
  assert.equal(readable('https://example.com/%E6%97%A5%E6%9C%AC%E8%AA%9E'), 'https://example.com/日本語');
  assert.equal(readable('https://example.com/%E2%80%AEgpj.exe'), 'https://example.com/gpj.exe');
  assert.equal(readable('https://example.com/%zz'), 'https://example.com/%zz');
});
