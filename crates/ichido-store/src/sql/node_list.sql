SELECT id, name, started_at, seen_at FROM ichido.nodes ORDER BY seen_at DESC, id
