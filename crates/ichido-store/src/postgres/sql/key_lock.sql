-- Before a settle of several statements: all its records in one order, so that two of them never meet crosswise.
SELECT 1 FROM ichido.ledger WHERE name = ANY ($1) ORDER BY name FOR UPDATE
