INSERT INTO ichido_ready (message_id, queue, priority, suspect, attempts, deaths, doubt_since, in_flight_until, last_fence)
SELECT message_id, queue, priority, suspect, attempts, deaths, doubt_since, in_flight_until, last_fence
FROM ichido_scheduled WHERE message_id IN (SELECT unhex(value) FROM json_each(?1))
