-- Lists where messages are, page by page, and the state in the last entry of each. A message has one row in one of these
-- tables, or none.
SELECT m.id AS message_id, e.fence, e.step, e.to_state, e.effect, e.attempts, e.deaths, e.doubt_since, e.in_flight_until,
       (l.message_id IS NOT NULL) + (s.message_id IS NOT NULL) + (r.message_id IS NOT NULL) AS places,
       CASE WHEN l.message_id IS NOT NULL THEN 'dead_letters' WHEN s.message_id IS NOT NULL THEN 'scheduled' ELSE 'ready' END AS place,
       coalesce(l.state, s.state, 'queued') AS place_state, l.effect AS place_effect,
       coalesce(l.attempts, s.attempts, r.attempts) AS place_attempts, coalesce(l.deaths, s.deaths, r.deaths) AS place_deaths,
       coalesce(l.doubt_since, s.doubt_since, r.doubt_since) AS place_doubt_since,
       coalesce(l.in_flight_until, s.in_flight_until, r.in_flight_until) AS place_in_flight_until
FROM ichido_messages m
LEFT JOIN ichido_dead_letters l ON l.message_id = m.id
LEFT JOIN ichido_scheduled s ON s.message_id = m.id
LEFT JOIN ichido_ready r ON r.queue = m.queue AND r.priority = m.priority AND r.message_id = m.id
LEFT JOIN ichido_events e ON e.message_id = m.id
    AND (e.fence, e.step) = (SELECT x.fence, x.step FROM ichido_events x WHERE x.message_id = m.id ORDER BY x.fence DESC, x.step DESC LIMIT 1)
WHERE m.id > ?1
ORDER BY m.id LIMIT ?2
