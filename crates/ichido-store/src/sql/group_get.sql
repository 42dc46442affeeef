SELECT id, queue, code, template, count, first_seen, last_seen, state, state_since, state_by
FROM ichido.failure_groups WHERE id = $1
