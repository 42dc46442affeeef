-- Lets the leases of a dead node lapse. Leases are few, and nodes die rarely. A lease that a transaction of the node still locks
-- is returned unlapsed: waiting for it would hold up all maintenance.
WITH now AS (SELECT clock_timestamp() + $2 * interval '1 microsecond' AS at),
held AS (SELECT l.fence FROM ichido.leases l, now WHERE l.node = $1 AND l.lease_until > now.at FOR UPDATE OF l SKIP LOCKED),
lapsed AS (UPDATE ichido.leases l SET lease_until = now.at FROM held, now WHERE l.fence = held.fence RETURNING l.fence)
SELECT l.fence, l.fence IN (SELECT fence FROM lapsed) AS lapsed FROM ichido.leases l, now
WHERE l.node = $1 AND l.lease_until > now.at
