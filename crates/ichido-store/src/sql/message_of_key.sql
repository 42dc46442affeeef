-- Finds the messages of a key, whatever their queue and identity. There is no index for it, because every new message would pay:
-- the unique index is read instead, from one pair of queue and identity to the next, and the key is looked up in each. $2 bounds
-- the pairs; a row without a message says that there may be more.
WITH RECURSIVE pair (number, queue, identity) AS (
    SELECT CAST(1 AS bigint), m.queue, m.identity
    FROM ichido.messages m
    WHERE m.id = (SELECT f.id FROM ichido.messages f ORDER BY f.queue, f.identity LIMIT 1)
    UNION ALL
    SELECT p.number + 1, m.queue, m.identity
    FROM pair p JOIN ichido.messages m ON m.id = coalesce(
        (SELECT n.id FROM ichido.messages n WHERE n.queue = p.queue AND n.identity > p.identity ORDER BY n.identity LIMIT 1),
        (SELECT n.id FROM ichido.messages n WHERE n.queue > p.queue ORDER BY n.queue, n.identity LIMIT 1))
    WHERE p.number <= $2
)
SELECT m.id
FROM pair p LEFT JOIN ichido.messages m ON m.queue = p.queue AND m.identity = p.identity AND m.key = $1 AND p.number <= $2
WHERE m.id IS NOT NULL OR p.number > $2
LIMIT $3
