INSERT INTO ichido_events (message_id, fence, step, at, from_state, to_state, kind, attempts, deaths, effect, excerpt, actor, about)
SELECT unhex(i.value ->> 0), i.value ->> 7, 0, ?2, i.value ->> 1, i.value ->> 2, i.value ->> 3, 0, 0,
       'none', i.value ->> 4, i.value ->> 5, i.value ->> 6
FROM json_each(?1) AS i
