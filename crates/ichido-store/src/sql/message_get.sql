-- Columns are named: with `*`, a prepared statement would fail once a newer program has added one.
SELECT id, queue, identity, idempotency_key, content_type, request, request_digest, status, attempts, max_attempts,
       next_attempt, last_error, last_error_text, effect, priority, hops, trace, trace_id, item, replacement_of, created_at, updated_at
FROM ichido.message WHERE id = $1
