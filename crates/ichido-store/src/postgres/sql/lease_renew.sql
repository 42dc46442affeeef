-- Leases are locked in the order in which reports lock them, so the two cannot deadlock.
WITH held AS (SELECT fence FROM ichido.leases WHERE fence = ANY ($1) ORDER BY fence FOR UPDATE)
UPDATE ichido.leases l SET lease_until = now.at + $2 * interval '1 microsecond'
FROM held, (SELECT clock_timestamp() + $3 * interval '1 microsecond' AS at) AS now
WHERE l.fence = held.fence
RETURNING l.fence
