-- Returns since when the oldest claimable message waits: it was enqueued then, or was scheduled for then. Within a priority, ids are
-- in order of time, so the first message of each priority in use is read, each with one step down the primary key.
WITH RECURSIVE urgency AS (
    SELECT min(priority) AS priority FROM ichido.ready WHERE queue = $1
    UNION ALL
    SELECT (SELECT r.priority FROM ichido.ready r WHERE r.queue = $1 AND r.priority > u.priority ORDER BY r.priority LIMIT 1)
    FROM urgency u WHERE u.priority IS NOT NULL
)
SELECT min(coalesce(m.due, m.created_at)) AS oldest
FROM urgency u
JOIN ichido.messages m ON m.id = (
    SELECT r.message_id FROM ichido.ready r
    WHERE r.queue = $1 AND r.priority = u.priority ORDER BY r.message_id LIMIT 1)
