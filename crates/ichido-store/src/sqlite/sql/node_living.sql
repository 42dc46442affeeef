-- Lists nodes that may live, the one seen longest ago first.
SELECT id, name, started_at, seen_at, locked, gone, ?1 AS now FROM ichido_nodes WHERE gone = 0 ORDER BY seen_at LIMIT ?2
