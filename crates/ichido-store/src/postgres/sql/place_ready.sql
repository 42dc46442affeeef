INSERT INTO ichido.ready (message_id, queue, attempts, deaths, doubt_since, in_flight_until, last_fence, priority, suspect)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::integer[], $4::integer[], $5::timestamptz[], $6::timestamptz[], $7::bigint[], $8::smallint[], $9::boolean[])
