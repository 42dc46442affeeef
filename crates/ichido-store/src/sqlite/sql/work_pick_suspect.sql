-- Finds one suspect message alone: a worker died holding it, and this attempt shows whether it was the cause. The index is
-- named, because the planner would rather scan the whole queue in order than trust that suspects are few.
SELECT m.id, m.identity, m.key, m.content_type, m.request, m.digest, m.hops, m.trace, m.trace_id, m.item, m.priority, m.max_attempts, m.created_at, m.due,
       r.suspect, r.attempts, r.deaths, r.doubt_since, r.in_flight_until, ?2 AS fence, ?3 AS claimed_at,
       CASE WHEN r.last_fence IS NOT NULL THEN (
           SELECT max(e.at) FROM (SELECT * FROM ichido_events WHERE message_id = r.message_id ORDER BY fence DESC LIMIT 32) AS e
           WHERE e.kind = 'requeued' OR e.kind = 'decided') END AS requeued_at
FROM ichido_ready r INDEXED BY ichido_ready_suspect CROSS JOIN ichido_messages m ON m.id = r.message_id
WHERE r.queue = ?1 AND r.suspect
ORDER BY r.priority, r.message_id
LIMIT CASE WHEN EXISTS (SELECT 1 FROM ichido_queues WHERE name = ?1 AND paused) THEN 0 ELSE 1 END
