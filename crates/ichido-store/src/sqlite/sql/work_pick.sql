-- Finds up to ?4 ready messages, most urgent and oldest first. No SKIP LOCKED: there is a single writer, so no row is locked by
-- others, and the next statement claims what is found here. No cursor: deleted rows leave nothing behind. The limit is 0 if the
-- queue is paused: a condition would be evaluated for each row of the whole queue.
SELECT m.id, m.identity, m.key, m.content_type, m.request, m.digest, m.hops, m.trace, m.trace_id, m.item, m.priority, m.max_attempts, m.created_at, m.due,
       r.suspect, r.attempts, r.deaths, r.doubt_since, r.in_flight_until, ?2 AS fence, ?3 AS claimed_at
FROM ichido_ready r CROSS JOIN ichido_messages m ON m.id = r.message_id
WHERE r.queue = ?1 AND NOT r.suspect
ORDER BY r.priority, r.message_id
LIMIT CASE WHEN EXISTS (SELECT 1 FROM ichido_queues WHERE name = ?1 AND paused) THEN 0 ELSE ?4 END
