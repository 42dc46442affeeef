\set n random(1, 10000)
SELECT state, status, body FROM floor_ledger WHERE name = sha256(convert_to('replay-' || :n, 'UTF8'));
