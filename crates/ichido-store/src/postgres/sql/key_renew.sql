UPDATE ichido.ledger l SET lease_until = now.at + i.lease * interval '1 microsecond'
FROM unnest($1::bytea[], $2::bigint[], $3::bigint[]) AS i (name, fence, lease),
     (SELECT clock_timestamp() + $4 * interval '1 microsecond' AS at) AS now
WHERE l.name = i.name AND l.fence = i.fence AND l.state = 'claimed'
RETURNING l.name, l.fence
