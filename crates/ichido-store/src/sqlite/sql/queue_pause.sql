INSERT INTO ichido_queues (name, paused, paused_by, changed_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (name) DO UPDATE SET paused = excluded.paused, paused_by = excluded.paused_by, changed_at = excluded.changed_at
