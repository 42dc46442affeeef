-- One node at a time holds a singleton task: the current holder, or any node once the lease has lapsed. A lease has lapsed when
-- its time has passed, or when it ends later than any lease (?5) can, because the clock was ahead when it was taken.
INSERT INTO ichido_singleton_tasks AS c (task, node, lease_until) VALUES (?1, ?2, ?4 + ?3)
ON CONFLICT (task) DO UPDATE SET node = excluded.node, lease_until = excluded.lease_until
    WHERE c.node = excluded.node OR c.lease_until <= ?4 OR c.lease_until > ?4 + ?5
RETURNING node
