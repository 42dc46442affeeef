-- Lists nodes that may live, the one seen longest ago first.
SELECT id, name, started_at, seen_at, locked, gone, clock_timestamp() + $1 * interval '1 microsecond' AS now
FROM ichido.nodes WHERE NOT gone ORDER BY seen_at, id LIMIT $2
