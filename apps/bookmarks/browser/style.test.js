// Rules about the style sheets, without a browser.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

const read = async (name) => (await readFile(new URL(`../page/${name}`, import.meta.url), 'utf8')).replace(/\/\*[^]*?\*\//g, '');

test('a touch leaves no hover behind: every rule for it asks for a pointer that can', async () => {
  for (const name of ['app.css', 'list.css', 'panel.css']) {
    const outside = (await read(name)).replace(/@media \(hover: hover\)[^{]*\{[^]*?\n\}/g, '');
    assert.doesNotMatch(outside, /:hover/, name);
  }
});
