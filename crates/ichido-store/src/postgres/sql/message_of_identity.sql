-- Finds messages of an identity, in queue $2 or in all, without order. There is no index for it, because every new message would
-- pay: the unique index is read instead, from one queue to the next. As many as $3 may not be all.
WITH RECURSIVE q (queue) AS (
    SELECT coalesce(CAST($2 AS text), (SELECT min(queue) FROM ichido.messages))
    UNION ALL
    SELECT (SELECT n.queue FROM ichido.messages n WHERE n.queue > q.queue ORDER BY n.queue LIMIT 1)
    FROM q WHERE CAST($2 AS text) IS NULL AND q.queue IS NOT NULL
)
SELECT m.id FROM q CROSS JOIN ichido.messages m WHERE m.queue = q.queue AND m.identity = $1 LIMIT $3
