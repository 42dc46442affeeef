INSERT INTO ichido_ready (message_id, queue, attempts, deaths, doubt_since, in_flight_until, last_fence, priority, suspect)
SELECT unhex(i.value ->> 0), i.value ->> 1, i.value ->> 2, i.value ->> 3, i.value ->> 4, i.value ->> 5, i.value ->> 6,
       i.value ->> 7, i.value ->> 8
FROM json_each(?1) AS i
