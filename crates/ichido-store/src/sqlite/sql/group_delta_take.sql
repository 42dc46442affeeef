-- Takes changes of groups to fold them, oldest first.
DELETE FROM ichido_failure_group_deltas
WHERE rowid IN (SELECT rowid FROM ichido_failure_group_deltas ORDER BY rowid LIMIT ?1)
RETURNING group_id, queue, code, template, delta, failed, at
