INSERT INTO ichido.dead_letters (message_id, queue, attempts, deaths, doubt_since, in_flight_until, last_fence, state, effect, code, error, since, closed, group_id)
SELECT i.message_id, i.queue, i.attempts, i.deaths, i.doubt_since, i.in_flight_until, i.last_fence, i.state, i.effect, i.code, i.error,
       coalesce(i.since, now.at), i.closed, i.group_id
FROM unnest($1::uuid[], $2::text[], $3::integer[], $4::integer[], $5::timestamptz[], $6::timestamptz[], $7::bigint[], $8::text[],
            $9::text[], $10::text[], $11::text[], $12::timestamptz[], $13::text[], $14::uuid[])
         AS i (message_id, queue, attempts, deaths, doubt_since, in_flight_until, last_fence, state, effect, code, error, since, closed, group_id),
     (SELECT clock_timestamp() + $15 * interval '1 microsecond' AS at) AS now
