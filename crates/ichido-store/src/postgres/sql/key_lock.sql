-- Locks all records of a settle of several statements in one order, so two settles cannot deadlock.
SELECT 1 FROM ichido.ledger WHERE name = ANY ($1) ORDER BY name FOR UPDATE
