-- Lists the groups that have open letters. Those that need a person come first, then the ones that failed last.
SELECT id, queue, code, template, count, first_seen, last_seen, state, state_since, state_by
FROM ichido.failure_groups
WHERE count > 0 AND (urgency, last_seen, id) < ($1, $2, $3)
ORDER BY urgency DESC, last_seen DESC, id DESC
LIMIT $4
