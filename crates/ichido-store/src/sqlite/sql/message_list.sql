-- Reads those of the messages ?8 that match, newest first. A NULL filter matches everything. CROSS JOIN makes SQLite look up
-- each message by its id.
SELECT m.id, m.queue, m.identity, m.idempotency_key, m.content_type, m.request, m.request_digest, m.status, m.attempts,
       m.max_attempts, m.next_attempt, m.last_error, m.last_error_text, m.effect, m.priority, m.hops, m.trace, m.trace_id, m.item,
       m.replacement_of, m.created_at, m.updated_at
FROM json_each(?8) AS i CROSS JOIN ichido_message AS m ON m.id = unhex(i.value)
WHERE (?1 IS NULL OR m.queue = ?1)
  AND (?2 IS NULL OR m.status = ?2)
  AND (?3 IS NULL OR m.identity = ?3)
  AND (?4 IS NULL OR m.idempotency_key = ?4)
  AND (?5 IS NULL OR m.last_error = ?5)
  AND (?6 IS NULL OR m.created_at >= ?6)
  AND (?7 IS NULL OR m.created_at < ?7)
  AND (?10 IS NULL OR m.trace_id = ?10)
  AND (?11 IS NULL OR EXISTS (SELECT 1 FROM ichido_events e WHERE e.message_id = m.id AND e.receipt = ?11))
ORDER BY m.id DESC
LIMIT ?9
