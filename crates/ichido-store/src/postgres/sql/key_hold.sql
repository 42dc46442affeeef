UPDATE ichido.ledger l SET state = 'unknown', lease_until = NULL
FROM unnest($1::bytea[], $2::bigint[]) AS i (name, fence)
WHERE l.name = i.name AND l.fence = i.fence AND l.state IN ('claimed', 'unknown')
RETURNING l.name
