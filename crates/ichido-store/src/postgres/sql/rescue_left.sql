-- Returns the messages that the lease still holds: those without an end under its fence. Earlier attempts are in the last
-- event.
SELECT m.id, m.priority, m.max_attempts,
       coalesce(e.attempts, 0) AS attempts, coalesce(e.deaths, 0) AS deaths, e.doubt_since, e.in_flight_until,
       $3::boolean AS suspect, $2::bigint AS last_fence,
       EXISTS (SELECT 1 FROM ichido.start_marks b WHERE b.fence = $2 AND b.message_id = m.id) AS started,
       EXISTS (SELECT 1 FROM ichido.events p WHERE p.message_id = m.id AND p.step = 2) AS proven
FROM unnest($1::uuid[]) AS i (id)
JOIN ichido.messages m ON m.id = i.id
LEFT JOIN LATERAL (SELECT attempts, deaths, doubt_since, in_flight_until FROM ichido.events WHERE message_id = m.id ORDER BY fence DESC, step DESC LIMIT 1) e ON true
WHERE NOT EXISTS (SELECT 1 FROM ichido.events x WHERE x.message_id = i.id AND x.fence = $2)
