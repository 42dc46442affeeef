-- Like message_list.sql, for a state that is not final, read from the small tables of live messages: a rare state is not
-- searched for among millions of finished messages.
SELECT m.id, m.queue, m.identity, m.idempotency_key, m.content_type, m.request, m.request_digest, m.status, m.attempts,
       m.max_attempts, m.next_attempt, m.last_error, m.last_error_text, m.effect, m.priority, m.hops, m.trace, m.trace_id, m.item, m.replacement_of,
       m.created_at, m.updated_at
FROM (
    SELECT DISTINCT message_id FROM (
        SELECT message_id FROM ichido.ready WHERE $2 = 'queued' AND ($1::text IS NULL OR queue = $1)
        UNION ALL
        SELECT message_id FROM ichido.scheduled WHERE state = $2 AND ($1::text IS NULL OR queue = $1)
        UNION ALL
        SELECT unnest(message_ids) FROM ichido.leases WHERE $2 = 'sending' AND ($1::text IS NULL OR queue = $1)
        UNION ALL
        SELECT message_id FROM ichido.dead_letters WHERE state = $2 AND ($1::text IS NULL OR queue = $1)) AS any_of_these
    WHERE message_id < $8
    ORDER BY message_id DESC) AS live
CROSS JOIN LATERAL (
    SELECT id, queue, identity, idempotency_key, content_type, request, request_digest, status, attempts, max_attempts,
           next_attempt, last_error, last_error_text, effect, priority, hops, trace, trace_id, item, replacement_of, created_at, updated_at
    FROM ichido.message
    WHERE id = live.message_id
      AND status = $2
      AND ($3::text IS NULL OR identity = $3)
      AND ($4::text IS NULL OR idempotency_key = $4)
      AND ($5::text IS NULL OR last_error = $5)
      AND ($6::timestamptz IS NULL OR created_at >= $6)
      AND ($7::timestamptz IS NULL OR created_at < $7)) AS m
ORDER BY live.message_id DESC
LIMIT $9
