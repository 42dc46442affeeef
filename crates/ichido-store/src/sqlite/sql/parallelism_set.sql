INSERT INTO ichido_queue_parallelism (queue, parallelism, set_by, set_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (queue) DO UPDATE SET parallelism = excluded.parallelism, set_by = excluded.set_by, set_at = excluded.set_at
