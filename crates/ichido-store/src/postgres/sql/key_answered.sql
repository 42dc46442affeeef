-- Notes when the calls of unknown outcomes were answered: from then on they are not in transit.
UPDATE ichido.ledger l SET completed_at = now.at
FROM unnest($1::bytea[], $2::bigint[]) AS i (name, fence),
     (SELECT clock_timestamp() + $3 * interval '1 microsecond' AS at) AS now
WHERE l.name = i.name AND l.fence = i.fence AND l.state = 'unknown'
