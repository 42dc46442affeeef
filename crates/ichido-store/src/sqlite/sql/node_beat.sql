INSERT INTO ichido_nodes (id, name, started_at, seen_at) VALUES (?1, ?2, ?3, ?3)
ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, gone = false
RETURNING started_at, seen_at, deaths
