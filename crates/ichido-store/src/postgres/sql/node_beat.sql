-- The heartbeat also carries the requests to cancel messages in flight, usually none, so nobody polls for them.
INSERT INTO ichido.nodes (id, name, started_at, seen_at)
SELECT $1, $2, now.at, now.at FROM (SELECT clock_timestamp() + $3 * interval '1 microsecond' AS at) AS now
ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, gone = false
RETURNING started_at, seen_at, deaths,
    (SELECT string_agg(c.message_id::text, ' ')
     FROM (SELECT message_id FROM ichido.cancellations ORDER BY message_id LIMIT $4) AS c) AS cancellations
