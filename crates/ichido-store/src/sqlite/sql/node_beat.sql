-- The heartbeat also carries the requests to cancel messages in flight, usually none, so nobody polls for them.
INSERT INTO ichido_nodes (id, name, started_at, seen_at) VALUES (?1, ?2, ?3, ?3)
ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, gone = false
RETURNING started_at, seen_at, deaths,
    (SELECT group_concat(lower(hex(c.message_id)), ' ')
     FROM (SELECT message_id FROM ichido_cancellations ORDER BY message_id LIMIT ?4) AS c) AS cancellations
