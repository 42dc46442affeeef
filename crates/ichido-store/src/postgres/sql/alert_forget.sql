DELETE FROM ichido.alerts
WHERE id = ANY (ARRAY(SELECT id FROM ichido.alerts WHERE resolved_at < $1 ORDER BY resolved_at LIMIT $2))
