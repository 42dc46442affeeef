-- Returns since when the oldest claimable message of each queue waits, as queue_oldest does for one queue. Each queue, up to a limit, and
-- each of its priorities in use is one step down the primary key. Pairs are not compared: SQLite would search by the queue alone.
WITH RECURSIVE name AS (
    SELECT (SELECT r.queue FROM ichido.ready r ORDER BY r.queue LIMIT 1) AS queue, 1 AS number
    UNION ALL
    SELECT (SELECT r.queue FROM ichido.ready r WHERE r.queue > n.queue ORDER BY r.queue LIMIT 1), n.number + 1
    FROM name n WHERE n.queue IS NOT NULL AND n.number < $1
), lane AS (
    SELECT n.queue, (SELECT r.priority FROM ichido.ready r WHERE r.queue = n.queue ORDER BY r.priority LIMIT 1) AS priority
    FROM name n WHERE n.queue IS NOT NULL
    UNION ALL
    SELECT l.queue, (SELECT r.priority FROM ichido.ready r WHERE r.queue = l.queue AND r.priority > l.priority ORDER BY r.priority LIMIT 1)
    FROM lane l WHERE l.priority IS NOT NULL
)
SELECT f.queue, min(f.since) AS oldest
FROM (
    -- Not a join: PostgreSQL expects more priorities than there are, and would read all messages.
    SELECT l.queue, (
        SELECT coalesce(
            CASE WHEN r.last_fence IS NOT NULL THEN (SELECT max(e.at) FROM (
                SELECT x.kind, x.at FROM ichido.events x WHERE x.message_id = r.message_id ORDER BY x.fence DESC LIMIT 32
            ) e WHERE e.kind IN ('requeued', 'decided')) END,
            (SELECT coalesce(m.due, m.created_at) FROM ichido.messages m WHERE m.id = r.message_id))
        FROM ichido.ready r
        WHERE r.queue = l.queue AND r.priority = l.priority ORDER BY r.message_id LIMIT 1
    ) AS since
    FROM lane l WHERE l.priority IS NOT NULL
) f
GROUP BY f.queue
