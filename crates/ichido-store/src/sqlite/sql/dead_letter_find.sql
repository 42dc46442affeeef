SELECT l.message_id, l.queue, m.identity, m.key, l.state, l.closed, l.effect, l.code, l.error, l.since, 0 AS suspect, l.attempts, l.deaths,
       l.doubt_since, l.in_flight_until, l.last_fence, l.group_id, l.asked_at, m.max_attempts, m.priority, m.replacement_of, m.item, m.created_at,
       length(m.request) AS request_bytes
FROM json_each(?1) AS i
CROSS JOIN ichido_dead_letters l ON l.message_id = unhex(i.value)
CROSS JOIN ichido_messages m ON m.id = l.message_id
