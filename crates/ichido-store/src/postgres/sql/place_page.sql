-- Lists where messages are, page by page, and the state in the last entry of each. A message has one row in one of these
-- tables, or none.
SELECT m.id AS message_id, e.fence, e.step, e.to_state, e.effect, e.tries::bigint AS tries, e.deaths::bigint AS deaths, e.doubt_since, e.travels_until,
       (l.message_id IS NOT NULL)::integer::bigint + (s.message_id IS NOT NULL)::integer + (r.message_id IS NOT NULL)::integer AS places,
       CASE WHEN l.message_id IS NOT NULL THEN 'letters' WHEN s.message_id IS NOT NULL THEN 'scheduled' ELSE 'ready' END AS place,
       coalesce(l.state, s.state, 'queued') AS place_state, l.effect AS place_effect,
       coalesce(l.tries, s.tries, r.tries)::bigint AS place_tries, coalesce(l.deaths, s.deaths, r.deaths)::bigint AS place_deaths,
       coalesce(l.doubt_since, s.doubt_since, r.doubt_since) AS place_doubt_since,
       coalesce(l.travels_until, s.travels_until, r.travels_until) AS place_travels_until
FROM ichido.messages m
LEFT JOIN ichido.letters l ON l.message_id = m.id
LEFT JOIN ichido.scheduled s ON s.message_id = m.id
LEFT JOIN ichido.ready r ON r.queue = m.queue AND r.priority = m.priority AND r.message_id = m.id
LEFT JOIN LATERAL (
    SELECT x.fence, x.step, x.to_state, x.effect, x.tries, x.deaths, x.doubt_since, x.travels_until
    FROM ichido.events x WHERE x.message_id = m.id ORDER BY x.fence DESC, x.step DESC LIMIT 1) e ON true
WHERE m.id > $1
ORDER BY m.id LIMIT $2
