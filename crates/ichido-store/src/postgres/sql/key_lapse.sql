-- Marks claims of these operations whose owner is gone, a bounded number at a time: their lease has expired, or, if $4 is true,
-- ends later than any lease ($5) can, because the clock was ahead when it was taken. A claim that is being renewed, settled or
-- replaced is locked, or no longer expired. The fence stays, so a late settle is still accepted.
WITH now AS (SELECT clock_timestamp() + $3 * interval '1 microsecond' AS at),
over AS (
    SELECT l.name
    FROM ichido.ledger l
    WHERE l.lease_until > (SELECT CASE WHEN $4 THEN at + $5 * interval '1 microsecond' ELSE '-infinity' END FROM now)
      AND l.lease_until <= (SELECT CASE WHEN $4 THEN 'infinity' ELSE at END FROM now)
      AND l.operation = ANY ($1)
    ORDER BY l.lease_until
    LIMIT $2
    FOR UPDATE SKIP LOCKED
),
marked AS (
    UPDATE ichido.ledger l SET state = 'unknown', lease_until = NULL
    FROM over WHERE l.name = over.name
    RETURNING l.operation, l.identity, l.key
)
SELECT operation, identity, key FROM marked
