-- Counts keys with an unknown outcome by operation, at most $2 of them, oldest first, using their own index.
--
-- A key that its next request may run again counts only if it was last claimed before $1: until then its caller retries.
SELECT u.operation, count(*) AS count, min(u.created_at) AS oldest
FROM (
    SELECT l.operation, l.guarantee, l.created_at, l.claimed_at
    FROM ichido.ledger l
    WHERE l.state = 'unknown'
    ORDER BY l.created_at, l.name
    LIMIT $2
) u
WHERE u.guarantee = 'none' OR u.claimed_at < $1
GROUP BY u.operation
ORDER BY u.operation
