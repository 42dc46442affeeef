-- Marks claims of these operations whose owner is gone, a bounded number at a time. One that is renewed, settled or taken over
-- just now is locked, or no longer over. The fence stays, so that a late settle is still heard.
WITH now AS (SELECT clock_timestamp() + $3 * interval '1 microsecond' AS at),
over AS (
    SELECT l.name
    FROM ichido.ledger l
    WHERE l.lease_until <= (SELECT at FROM now) AND l.operation = ANY ($1)
    ORDER BY l.lease_until
    LIMIT $2
    FOR UPDATE SKIP LOCKED
),
marked AS (
    UPDATE ichido.ledger l SET state = 'unknown', lease_until = NULL
    FROM over WHERE l.name = over.name
    RETURNING 1
)
SELECT count(*) FROM marked
