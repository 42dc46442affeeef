-- Lists letters of one queue that match a filter, newest first, without their requests.
SELECT l.message_id, l.queue, m.identity, m.key, l.state, l.closed, l.effect, l.code, l.error, l.since, 0 AS suspect, l.attempts, l.deaths,
       l.doubt_since, l.in_flight_until, l.last_fence, l.group_id, l.asked_at, m.max_attempts, m.priority, m.replacement_of, m.item, m.created_at,
       length(m.request) AS request_bytes
FROM ichido_dead_letters l CROSS JOIN ichido_messages m ON m.id = l.message_id
WHERE l.state = ?1 AND l.closed = ?2 AND l.queue = ?3 AND (l.since, l.message_id) < (?4, ?5) AND l.since >= ?6
  AND (?7 IS NULL OR l.code = ?7) AND (?8 IS NULL OR l.effect = ?8) AND (?9 IS NULL OR m.identity = ?9)
  AND (?10 IS NULL OR instr(l.error, ?10) > 0)
ORDER BY l.since DESC, l.message_id DESC
LIMIT ?11
