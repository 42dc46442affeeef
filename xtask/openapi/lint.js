// Redocly's recommended rules, without its command line, which needs a newer Node than the other tests.
import { createConfig, formatProblems, getTotals, lint } from '@redocly/openapi-core';

const config = await createConfig({ extends: ['recommended'] });
const problems = await lint({ ref: process.argv[2], config });
const totals = getTotals(problems);
formatProblems(problems, { format: 'stylish', totals, version: '' });
// Its warnings are a matter of taste, such as an operation without error responses.
process.exitCode = totals.errors === 0 ? 0 : 1;
