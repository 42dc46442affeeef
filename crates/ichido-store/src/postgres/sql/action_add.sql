INSERT INTO ichido.events (message_id, fence, step, at, from_state, to_state, kind, attempts, deaths, effect, excerpt, actor, about)
SELECT $1, nextval('ichido.fence'), 0, clock_timestamp() + $2 * interval '1 microsecond', $3, $4, $5, 0, 0, $6, $7, $8, $9
