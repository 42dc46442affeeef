-- The owner is gone: its lease lapsed. The fence stays, so that its late settle is still heard.
UPDATE ichido.ledger l SET state = 'unknown', lease_until = NULL
FROM (SELECT clock_timestamp() + $3 * interval '1 microsecond' AS at) AS now
WHERE l.name = $1 AND l.fence = $2 AND l.state = 'claimed' AND l.lease_until <= now.at
