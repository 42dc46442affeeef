\set a random(1, 9000000000000000)
\set b random(1, 9000000000000000)
INSERT INTO floor_ledger VALUES (sha256(convert_to(:a || '-' || :b, 'UTF8')), sha256('f'), 'claimed', 1, clock_timestamp() + interval '30 s', NULL, NULL, clock_timestamp(), NULL) ON CONFLICT DO NOTHING RETURNING fence;
UPDATE floor_ledger SET state = 'applied', lease_until = NULL, status = 201, body = convert_to(repeat('x', 200), 'UTF8'), expires_at = clock_timestamp() + interval '72 h' WHERE name = sha256(convert_to(:a || '-' || :b, 'UTF8')) AND fence = 1 AND state = 'claimed';
