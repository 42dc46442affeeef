INSERT INTO ichido.events
    (message_id, fence, step, claimed_at, at, from_state, to_state, kind, attempts, deaths, doubt_since, in_flight_until, effect,
     code, status, result_digest, receipt, excerpt, node, actor, response, response_type, response_bytes)
SELECT i.message_id, coalesce(i.fence, nextval('ichido.fence')), i.step, i.claimed_at, now.at, i.from_state, i.to_state, i.kind,
       i.attempts, i.deaths, i.doubt_since, i.in_flight_until, i.effect, i.code, i.status, i.result_digest, i.receipt, i.excerpt,
       i.node, i.actor, i.response, i.response_type, i.response_bytes
FROM unnest($1::uuid[], $2::bigint[], $3::smallint[], $4::timestamptz[], $5::text[], $6::text[], $7::text[], $8::integer[],
            $9::integer[], $10::timestamptz[], $11::timestamptz[], $12::text[], $13::text[], $14::smallint[], $15::bytea[],
            $16::text[], $17::text[], $18::uuid[], $19::text[], $20::bytea[], $21::text[], $22::integer[])
         AS i (message_id, fence, step, claimed_at, from_state, to_state, kind, attempts, deaths, doubt_since, in_flight_until, effect,
               code, status, result_digest, receipt, excerpt, node, actor, response, response_type, response_bytes),
     (SELECT clock_timestamp() + $23 * interval '1 microsecond' AS at) AS now
