SELECT id, name, started_at, seen_at, gone FROM ichido.nodes ORDER BY seen_at DESC, id
