SELECT l.message_id, l.queue, m.identity, m.key, l.state, l.closed, l.effect, l.code, l.error, l.since, 0 AS suspect, l.tries, l.deaths,
       l.doubt_since, l.travels_until, l.last_fence, m.tries_allowed, m.priority, m.made_from, m.created_at,
       length(m.request) AS request_bytes
FROM json_each(?1) AS i
CROSS JOIN ichido_letters l ON l.message_id = unhex(i.value)
CROSS JOIN ichido_messages m ON m.id = l.message_id
