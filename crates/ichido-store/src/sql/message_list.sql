-- Newest first, one page at a time. A NULL filter matches everything; $8 is never NULL, so SQLite finds a page with the index.
SELECT id, queue, identity, idempotency_key, content_type, request, request_digest, status, attempts, max_attempts,
       next_attempt, last_error, last_error_text, effect, priority, hops, trace, trace_id, item, replacement_of, created_at, updated_at
FROM ichido.message
WHERE (CAST($1 AS text) IS NULL OR queue = $1)
  AND (CAST($2 AS text) IS NULL OR status = $2)
  AND (CAST($3 AS text) IS NULL OR identity = $3)
  AND (CAST($4 AS text) IS NULL OR idempotency_key = $4)
  AND (CAST($5 AS text) IS NULL OR last_error = $5)
  AND (CAST($6 AS timestamptz) IS NULL OR created_at >= $6)
  AND (CAST($7 AS timestamptz) IS NULL OR created_at < $7)
  AND id < $8
ORDER BY id DESC
LIMIT $9
