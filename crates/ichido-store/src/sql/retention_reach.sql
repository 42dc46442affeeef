-- Records how far retention has come. It never goes back: another node may have come further.
INSERT INTO ichido.singleton_tasks AS c (task, node, lease_until) VALUES ('retention', $1, $2)
ON CONFLICT (task) DO UPDATE SET lease_until = excluded.lease_until WHERE c.lease_until < excluded.lease_until
