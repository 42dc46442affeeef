SELECT l.message_id, l.queue, m.identity, m.key, l.state, l.closed, l.effect, l.code, l.error, l.since, false AS suspect, l.attempts, l.deaths,
       l.doubt_since, l.in_flight_until, l.last_fence, l.group_id, l.asked_at, m.max_attempts, m.priority, m.replacement_of, m.item, m.created_at,
       octet_length(m.request)::bigint AS request_bytes
FROM ichido.dead_letters l JOIN ichido.messages m ON m.id = l.message_id
WHERE l.message_id = ANY ($1)
