-- The owner is gone: its lease lapsed, or ends later than any lease ($4) can, because the clock was ahead when it was taken.
-- The fence stays, so a late settle is still accepted.
UPDATE ichido.ledger l SET state = 'unknown', lease_until = NULL
FROM (SELECT clock_timestamp() + $3 * interval '1 microsecond' AS at) AS now
WHERE l.name = $1 AND l.fence = $2 AND l.state = 'claimed'
  AND (l.lease_until <= now.at OR l.lease_until > now.at + $4 * interval '1 microsecond')
