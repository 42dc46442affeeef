INSERT INTO ichido_events
    (message_id, fence, step, claimed_at, at, from_state, to_state, kind, attempts, deaths, doubt_since, in_flight_until, effect,
     code, status, result_digest, receipt, excerpt, node, actor, response, response_type, response_bytes)
SELECT unhex(i.value ->> 0), i.value ->> 1, i.value ->> 2, i.value ->> 3, ?2, i.value ->> 4, i.value ->> 5, i.value ->> 6,
       i.value ->> 7, i.value ->> 8, i.value ->> 9, i.value ->> 10, i.value ->> 11, i.value ->> 12, i.value ->> 13,
       unhex(i.value ->> 14), i.value ->> 15, i.value ->> 16, unhex(i.value ->> 17), i.value ->> 18,
       unhex(i.value ->> 19), i.value ->> 20, i.value ->> 21
FROM json_each(?1) AS i
