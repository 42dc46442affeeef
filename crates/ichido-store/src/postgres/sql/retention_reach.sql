-- Retention has come so far. Never back: another node may have come further.
INSERT INTO ichido.caretakers AS c (duty, node, lease_until) VALUES ('retention', '00000000-0000-0000-0000-000000000000', $1)
ON CONFLICT (duty) DO UPDATE SET lease_until = greatest(c.lease_until, excluded.lease_until)
