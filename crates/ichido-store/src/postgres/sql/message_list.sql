-- Newest first, a page at a time. A NULL filter is no filter.
SELECT id, queue, identity, idempotency_key, content_type, request, request_digest, status, tries, tries_allowed,
       next_attempt, last_error, last_error_text, effect, priority, hops, trace, made_from, created_at, updated_at
FROM ichido.message
WHERE ($1::text IS NULL OR queue = $1)
  AND ($2::text IS NULL OR status = $2)
  AND ($3::text IS NULL OR identity = $3)
  AND ($4::text IS NULL OR idempotency_key = $4)
  AND ($5::text IS NULL OR last_error = $5)
  AND ($6::timestamptz IS NULL OR created_at >= $6)
  AND ($7::timestamptz IS NULL OR created_at < $7)
  AND ($8::uuid IS NULL OR id < $8)
ORDER BY id DESC
LIMIT $9
