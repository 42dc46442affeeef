-- Returns since when the oldest claimable message of each queue waits, as queue_oldest does for one queue. Each queue and priority in use
-- is read with one step down the primary key, up to a limit.
WITH RECURSIVE lane AS (
    SELECT (SELECT r.queue FROM ichido.ready r ORDER BY r.queue, r.priority LIMIT 1) AS queue,
           (SELECT r.priority FROM ichido.ready r ORDER BY r.queue, r.priority LIMIT 1) AS priority,
           1 AS number
    UNION ALL
    SELECT (SELECT r.queue FROM ichido.ready r WHERE (r.queue, r.priority) > (l.queue, l.priority) ORDER BY r.queue, r.priority LIMIT 1),
           (SELECT r.priority FROM ichido.ready r WHERE (r.queue, r.priority) > (l.queue, l.priority) ORDER BY r.queue, r.priority LIMIT 1),
           l.number + 1
    FROM lane l WHERE l.queue IS NOT NULL AND l.number < $1
)
SELECT l.queue, min(coalesce(m.due, m.created_at)) AS oldest
FROM lane l
JOIN ichido.messages m ON m.id = (
    SELECT r.message_id FROM ichido.ready r
    WHERE r.queue = l.queue AND r.priority = l.priority ORDER BY r.message_id LIMIT 1)
GROUP BY l.queue
