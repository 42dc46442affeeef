DELETE FROM ichido.failure_groups
WHERE count <= 0 AND id = ANY (ARRAY(SELECT id FROM ichido.failure_groups WHERE count <= 0 AND last_seen < $1 ORDER BY last_seen LIMIT $2))
