-- Records how far retention has come. It never goes back: another node may have come further.
INSERT INTO ichido.caretakers AS c (duty, node, lease_until) VALUES ('retention', $1, $2)
ON CONFLICT (duty) DO UPDATE SET lease_until = excluded.lease_until WHERE c.lease_until < excluded.lease_until
