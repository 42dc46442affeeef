UPDATE ichido.leases l SET lease_until = now.at + $2 * interval '1 microsecond'
FROM (SELECT clock_timestamp() + $3 * interval '1 microsecond' AS at) AS now
WHERE l.fence = ANY ($1)
RETURNING l.fence
