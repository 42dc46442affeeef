INSERT INTO ichido_dead_letters (message_id, queue, attempts, deaths, doubt_since, in_flight_until, last_fence, state, effect, code, error, since, closed, group_id)
SELECT unhex(i.value ->> 0), i.value ->> 1, i.value ->> 2, i.value ->> 3, i.value ->> 4, i.value ->> 5, i.value ->> 6,
       i.value ->> 7, i.value ->> 8, i.value ->> 9, i.value ->> 10, coalesce(i.value ->> 11, ?2), i.value ->> 12, unhex(i.value ->> 13)
FROM json_each(?1) AS i
