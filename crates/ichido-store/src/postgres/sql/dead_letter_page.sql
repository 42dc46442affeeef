-- Lists letters that match a filter, newest first, without their requests. State, disposition, queue or group, and time use an index;
-- other filters skip rows.
SELECT l.message_id, l.queue, m.identity, m.key, l.state, l.closed, l.effect, l.code, l.error, l.since, false AS suspect, l.attempts, l.deaths,
       l.doubt_since, l.in_flight_until, l.last_fence, l.group_id, l.asked_at, m.max_attempts, m.priority, m.replacement_of, m.item, m.created_at,
       octet_length(m.request)::bigint AS request_bytes
FROM ichido.dead_letters l JOIN ichido.messages m ON m.id = l.message_id
WHERE l.state = $1 AND l.closed = $2 AND ($3::text IS NULL OR l.queue = $3)
  AND (l.since, l.message_id) < ($4, $5) AND l.since >= $6
  AND ($7::text IS NULL OR l.code = $7) AND ($8::text IS NULL OR l.effect = $8) AND ($9::text IS NULL OR m.identity = $9)
  AND ($10::text IS NULL OR position($10 IN l.error) > 0)
  AND ($12::uuid IS NULL OR l.group_id = $12)
ORDER BY l.since DESC, l.message_id DESC
LIMIT $11
