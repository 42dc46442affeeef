-- Takes changes of groups to fold them. Two nodes that fold at once take different ones.
DELETE FROM ichido.failure_group_deltas
WHERE ctid = ANY (ARRAY (SELECT ctid FROM ichido.failure_group_deltas LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING group_id, queue, code, template, delta, failed, at
