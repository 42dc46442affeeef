-- Retention has come so far. Never back: another node may have come further.
INSERT INTO ichido_caretakers AS c (duty, node, lease_until) VALUES ('retention', zeroblob(16), ?1)
ON CONFLICT (duty) DO UPDATE SET lease_until = max(c.lease_until, excluded.lease_until)
