DELETE FROM ichido_failure_groups
WHERE id IN (SELECT id FROM ichido_failure_groups WHERE count <= 0 AND last_seen < ?1 ORDER BY last_seen LIMIT ?2)
