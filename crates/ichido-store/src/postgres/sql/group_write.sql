UPDATE ichido.failure_groups g
SET count = i.count, first_seen = i.first_seen, last_seen = i.last_seen, state = i.state, state_since = i.state_since,
    state_by = i.state_by, urgency = i.urgency
FROM unnest($1::uuid[], $2::bigint[], $3::timestamptz[], $4::timestamptz[], $5::text[], $6::timestamptz[], $7::text[], $8::smallint[])
         AS i (id, count, first_seen, last_seen, state, state_since, state_by, urgency)
WHERE g.id = i.id
