INSERT INTO ichido.scheduled (message_id, queue, attempts, deaths, doubt_since, in_flight_until, last_fence, priority, suspect, state, due)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::integer[], $4::integer[], $5::timestamptz[], $6::timestamptz[], $7::bigint[], $8::smallint[], $9::boolean[],
                     $10::text[], $11::timestamptz[])
