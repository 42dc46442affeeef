-- Returns since when the oldest claimable message waits: it was enqueued then, was scheduled for then, or a person sent it again
-- then. Within a priority, ids are in order of time, so the first message of each priority in use is read, each with one step down the
-- primary key. If that was sent again, the messages behind it may wait longer; they are looked at once it is claimed.
WITH RECURSIVE urgency AS (
    SELECT min(priority) AS priority FROM ichido.ready WHERE queue = $1
    UNION ALL
    SELECT (SELECT r.priority FROM ichido.ready r WHERE r.queue = $1 AND r.priority > u.priority ORDER BY r.priority LIMIT 1)
    FROM urgency u WHERE u.priority IS NOT NULL
)
SELECT min(coalesce(
    CASE WHEN f.last_fence IS NOT NULL THEN (SELECT max(e.at) FROM (
            SELECT x.kind, x.at FROM ichido.events x WHERE x.message_id = f.message_id ORDER BY x.fence DESC LIMIT 32
        ) e WHERE e.kind IN ('requeued', 'decided')) END,
    m.due, m.created_at)) AS oldest
FROM urgency u
JOIN ichido.ready f ON f.queue = $1 AND f.priority = u.priority AND f.message_id = (
    SELECT r.message_id FROM ichido.ready r
    WHERE r.queue = $1 AND r.priority = u.priority ORDER BY r.message_id LIMIT 1)
JOIN ichido.messages m ON m.id = f.message_id
