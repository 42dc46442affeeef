-- Deletes keys that had expired at $2, a bounded number at a time. A key that an unfinished message still uses is checked again
-- later.
WITH now AS (SELECT $2::timestamptz AS at),
due AS (
    SELECT l.name, l.message_id IS NOT NULL
               AND EXISTS (SELECT 1 FROM ichido.messages m WHERE m.id = l.message_id)
               AND NOT EXISTS (SELECT 1 FROM ichido.events e WHERE e.message_id = l.message_id AND e.to_state IN ('sent', 'cancelled')) AS held
    FROM ichido.ledger l
    WHERE l.expires_at <= (SELECT at FROM now)
    ORDER BY l.expires_at
    LIMIT $1
    FOR UPDATE OF l SKIP LOCKED
),
later AS (
    UPDATE ichido.ledger l SET expires_at = now.at + interval '1 hour'
    FROM due, now WHERE l.name = due.name AND due.held
),
gone AS (
    DELETE FROM ichido.ledger l USING due WHERE l.name = due.name AND NOT due.held
    RETURNING 1
)
SELECT (SELECT count(*) FROM gone) AS deleted, (SELECT count(*) FROM due) AS checked
