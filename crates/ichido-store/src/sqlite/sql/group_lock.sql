SELECT id, queue, code, template, count, first_seen, last_seen, state, state_since, state_by, ?2 AS now
FROM ichido_failure_groups WHERE id = ?1
