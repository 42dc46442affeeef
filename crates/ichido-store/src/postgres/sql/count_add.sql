INSERT INTO ichido.count_deltas (queue, state, delta) SELECT * FROM unnest($1::text[], $2::text[], $3::integer[])
