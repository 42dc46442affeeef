INSERT INTO ichido.ready (message_id, queue, priority, suspect, tries, deaths, doubt_since, travels_until, last_fence)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::smallint[], $4::boolean[], $5::integer[], $6::integer[], $7::timestamptz[], $8::timestamptz[], $9::bigint[])
