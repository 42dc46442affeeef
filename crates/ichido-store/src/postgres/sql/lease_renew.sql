-- A claim that has expired is not renewed: it may be rescued at any moment. Leases are locked in the order in which reports lock
-- them, so the two cannot deadlock. $4 is empty here: only SQLite has claims that outlive a jump of the wall clock.
WITH now AS (SELECT clock_timestamp() + $3 * interval '1 microsecond' AS at),
held AS (
    SELECT fence FROM ichido.leases
    WHERE fence = ANY ($1) AND (lease_until > (SELECT at FROM now) OR fence = ANY ($4))
    ORDER BY fence FOR UPDATE
)
UPDATE ichido.leases l SET lease_until = now.at + $2 * interval '1 microsecond'
FROM held, now
WHERE l.fence = held.fence
RETURNING l.fence
