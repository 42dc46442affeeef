-- Returns the messages that the lease still holds: those without an end under its fence. Earlier attempts are in the last
-- event.
SELECT m.id, m.priority, m.max_attempts,
       coalesce(e.attempts, 0) AS attempts, coalesce(e.deaths, 0) AS deaths, e.doubt_since, e.in_flight_until,
       ?2 AS suspect, ?1 AS last_fence,
       EXISTS (SELECT 1 FROM ichido_start_marks b WHERE b.fence = ?1 AND b.message_id = m.id) AS started,
       EXISTS (SELECT 1 FROM ichido_events p WHERE p.message_id = m.id AND p.step = 2) AS proven
FROM json_each((SELECT message_ids FROM ichido_leases WHERE fence = ?1)) AS i
CROSS JOIN ichido_messages m ON m.id = unhex(i.value)
LEFT JOIN ichido_events e ON e.message_id = m.id
    AND (e.fence, e.step) = (SELECT x.fence, x.step FROM ichido_events x WHERE x.message_id = m.id ORDER BY x.fence DESC, x.step DESC LIMIT 1)
WHERE NOT EXISTS (SELECT 1 FROM ichido_events x WHERE x.message_id = m.id AND x.fence = ?1)
