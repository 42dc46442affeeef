-- Dead or parked, newest first (SPEC E3), by their own index. The letter before the page is never NULL, and one queue's letters
-- have a statement of their own: SQLite plans a statement once for all values, and would sort every letter to be safe.
SELECT v.id, v.queue, v.identity, v.idempotency_key, v.content_type, v.request, v.request_digest, v.status, v.tries,
       v.tries_allowed, v.next_attempt, v.last_error, v.last_error_text, v.effect, v.priority, v.hops, v.trace, v.made_from,
       v.created_at, v.updated_at, l.since
FROM ichido_letters l CROSS JOIN ichido_message v ON v.id = l.message_id
WHERE l.state = ?1 AND l.closed = 'open' AND (l.since, l.message_id) < (?2, ?3)
ORDER BY l.since DESC, l.message_id DESC
LIMIT ?4
