INSERT INTO ichido.messages SELECT (lpad(to_hex(1735689600000 + n), 12, '0') || '7000' || '8' || lpad(to_hex(n), 15, '0'))::uuid, 'orders', 'alice', 'h' || n, sha256('x'), 'text/plain', 'x', NULL, 2, 9, NULL, NULL, '2025-01-01'::timestamptz + n * interval '1 ms' FROM generate_series(1, 1000000) n;
INSERT INTO ichido.events (message_id, fence, step, claimed_at, at, from_state, to_state, kind, attempts, deaths, effect) SELECT (lpad(to_hex(1735689600000 + n), 12, '0') || '7000' || '8' || lpad(to_hex(n), 15, '0'))::uuid, n, 0, now(), now(), 'sending', 'sent', 'succeeded', 1, 0, 'done' FROM generate_series(1, 1000000) n;
VACUUM ANALYZE ichido.messages;
VACUUM ANALYZE ichido.events;
