-- Newest first, a page at a time. A NULL filter is no filter; ?8 is never NULL, so that a page is found by the index.
SELECT id, queue, identity, idempotency_key, content_type, request, request_digest, status, tries, tries_allowed,
       next_attempt, last_error, last_error_text, effect, priority, hops, trace, made_from, created_at, updated_at
FROM ichido_message
WHERE (?1 IS NULL OR queue = ?1)
  AND (?2 IS NULL OR status = ?2)
  AND (?3 IS NULL OR identity = ?3)
  AND (?4 IS NULL OR idempotency_key = ?4)
  AND (?5 IS NULL OR last_error = ?5)
  AND (?6 IS NULL OR created_at >= ?6)
  AND (?7 IS NULL OR created_at < ?7)
  AND id < ?8
ORDER BY id DESC
LIMIT ?9
