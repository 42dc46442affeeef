// Redocly's recommended rules, without its command line: that needs a newer Node than the rest of the tests.
import { createConfig, formatProblems, getTotals, lint } from '@redocly/openapi-core';

const config = await createConfig({ extends: ['recommended'] });
const problems = await lint({ ref: process.argv[2], config });
const totals = getTotals(problems);
formatProblems(problems, { format: 'stylish', totals, version: '' });
// Its warnings are about taste: a page without refusals, say.
process.exitCode = totals.errors === 0 ? 0 : 1;
