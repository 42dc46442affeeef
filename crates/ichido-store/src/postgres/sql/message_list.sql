-- Reads those of the messages $8 that match, newest first. A NULL filter matches everything. OFFSET 0 makes PostgreSQL look up
-- each message by its id. With `queue = $1` alone, it would also look for each message in the whole queue, without its priority.
SELECT m.id, m.queue, m.identity, m.idempotency_key, m.content_type, m.request, m.request_digest, m.status, m.attempts,
       m.max_attempts, m.next_attempt, m.last_error, m.last_error_text, m.effect, m.priority, m.hops, m.trace, m.trace_id, m.item,
       m.replacement_of, m.created_at, m.updated_at
FROM unnest($8::uuid[]) AS i (id)
CROSS JOIN LATERAL (
    SELECT id, queue, identity, idempotency_key, content_type, request, request_digest, status, attempts, max_attempts,
           next_attempt, last_error, last_error_text, effect, priority, hops, trace, trace_id, item, replacement_of, created_at, updated_at
    FROM ichido.message
    WHERE id = i.id
      AND coalesce(queue = $1::text, true)
      AND ($2::text IS NULL OR status = $2)
      AND ($3::text IS NULL OR identity = $3)
      AND ($4::text IS NULL OR idempotency_key = $4)
      AND ($5::text IS NULL OR last_error = $5)
      AND ($6::timestamptz IS NULL OR created_at >= $6)
      AND ($7::timestamptz IS NULL OR created_at < $7)
      AND ($10::text IS NULL OR trace_id = $10)
      AND ($11::text IS NULL OR EXISTS (SELECT 1 FROM ichido.events e WHERE e.message_id = i.id AND e.receipt = $11))
    OFFSET 0) AS m
ORDER BY m.id DESC
LIMIT $9
