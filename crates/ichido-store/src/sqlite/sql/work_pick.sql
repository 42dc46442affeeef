-- Up to ?4 ready messages, most urgent and oldest first. No SKIP LOCKED: there is a single writer, so no row is held elsewhere,
-- and what is picked here is taken by the next statement. No mark to start behind: deleted rows leave nothing in the way.
-- That the queue is paused is said by the limit: as a condition it would be asked of each row, through the whole queue.
SELECT m.id, m.identity, m.key, m.content_type, m.request, m.digest, m.hops, m.trace, m.priority, m.tries_allowed, m.created_at,
       r.suspect, r.tries, r.deaths, r.doubt_since, r.travels_until, r.last_fence, ?2 AS fence, ?3 AS claimed_at
FROM ichido_ready r CROSS JOIN ichido_messages m ON m.id = r.message_id
WHERE r.queue = ?1 AND NOT r.suspect
ORDER BY r.priority, r.message_id
LIMIT CASE WHEN EXISTS (SELECT 1 FROM ichido_queues WHERE name = ?1 AND paused) THEN 0 ELSE ?4 END
