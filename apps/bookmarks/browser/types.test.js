// The pages match their declared types, as strictly as the module they are built on.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const MODULE = join(HERE, '../../../clients/js');

test('the pages match their types', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'bookmarks-types-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  // As served: the module in its own folder beside the pages.
  await cp(join(HERE, '../page'), folder, { recursive: true });
  await cp(MODULE, join(folder, 'ichido'), { recursive: true, filter: (path) => !/node_modules|test$/.test(path.slice(MODULE.length)) });
  const compilerOptions = {
    noEmit: true, allowJs: true, checkJs: true, strict: true, noUncheckedIndexedAccess: true, noUnusedLocals: true, skipLibCheck: true,
    target: 'es2022', module: 'esnext', moduleResolution: 'bundler', lib: ['es2022', 'dom', 'dom.iterable'], types: [],
  };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.js'] }));
  const said = await new Promise((resolve) => execFile(join(MODULE, 'node_modules/.bin/tsc'), ['--project', folder], (error, out) => resolve(error ? `${out}${error}` : '')));
  assert.equal(said, '');
});
