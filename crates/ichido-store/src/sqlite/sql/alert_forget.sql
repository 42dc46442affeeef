DELETE FROM ichido_alerts WHERE id IN (SELECT id FROM ichido_alerts WHERE resolved_at < ?1 ORDER BY resolved_at LIMIT ?2)
