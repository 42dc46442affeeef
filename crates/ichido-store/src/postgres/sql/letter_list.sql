-- Dead or parked and open, newest first (SPEC E3), by their own index.
SELECT v.id, v.queue, v.identity, v.idempotency_key, v.content_type, v.request, v.request_digest, v.status, v.tries,
       v.tries_allowed, v.next_attempt, v.last_error, v.last_error_text, v.effect, v.priority, v.hops, v.trace, v.made_from,
       v.created_at, v.updated_at, l.since
FROM ichido.letters l JOIN ichido.message v ON v.id = l.message_id
WHERE l.state = $1 AND l.closed = 'open' AND ($2::text IS NULL OR l.queue = $2)
  AND ($3::timestamptz IS NULL OR (l.since, l.message_id) < ($3, $4))
ORDER BY l.since DESC, l.message_id DESC
LIMIT $5
