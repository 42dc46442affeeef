-- Lists where messages are, page by page, and the state in the last entry of each. A message has one row in one of these
-- tables, or none.
SELECT m.id AS message_id, e.fence, e.step, e.to_state, e.effect, e.attempts::bigint AS attempts, e.deaths::bigint AS deaths, e.doubt_since, e.in_flight_until,
       (l.message_id IS NOT NULL)::integer::bigint + (s.message_id IS NOT NULL)::integer + (r.message_id IS NOT NULL)::integer AS places,
       CASE WHEN l.message_id IS NOT NULL THEN 'dead_letters' WHEN s.message_id IS NOT NULL THEN 'scheduled' ELSE 'ready' END AS place,
       coalesce(l.state, s.state, 'queued') AS place_state, l.effect AS place_effect,
       coalesce(l.attempts, s.attempts, r.attempts)::bigint AS place_attempts, coalesce(l.deaths, s.deaths, r.deaths)::bigint AS place_deaths,
       coalesce(l.doubt_since, s.doubt_since, r.doubt_since) AS place_doubt_since,
       coalesce(l.in_flight_until, s.in_flight_until, r.in_flight_until) AS place_in_flight_until
FROM ichido.messages m
LEFT JOIN ichido.dead_letters l ON l.message_id = m.id
LEFT JOIN ichido.scheduled s ON s.message_id = m.id
LEFT JOIN ichido.ready r ON r.queue = m.queue AND r.priority = m.priority AND r.message_id = m.id
LEFT JOIN LATERAL (
    SELECT x.fence, x.step, x.to_state, x.effect, x.attempts, x.deaths, x.doubt_since, x.in_flight_until
    FROM ichido.events x WHERE x.message_id = m.id ORDER BY x.fence DESC, x.step DESC LIMIT 1) e ON true
WHERE m.id > $1
ORDER BY m.id LIMIT $2
