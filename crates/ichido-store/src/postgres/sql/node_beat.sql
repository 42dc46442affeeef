INSERT INTO ichido.nodes (id, name, started_at, seen_at)
SELECT $1, $2, now.at, now.at FROM (SELECT clock_timestamp() + $3 * interval '1 microsecond' AS at) AS now
ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, gone = false
RETURNING started_at, seen_at, deaths
