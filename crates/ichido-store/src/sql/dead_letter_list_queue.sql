-- Like dead_letter_list.sql, for one queue. SQLite plans a statement once for all values, so each has its own statement.
SELECT v.id, v.queue, v.identity, v.idempotency_key, v.content_type, v.request, v.request_digest, v.status, v.attempts,
       v.max_attempts, v.next_attempt, v.last_error, v.last_error_text, v.effect, v.priority, v.hops, v.trace, v.trace_id, v.item, v.replacement_of,
       v.created_at, v.updated_at, l.since
FROM ichido.dead_letters l CROSS JOIN ichido.message v
WHERE v.id = l.message_id AND l.state = $1 AND l.closed = 'open' AND (l.since, l.message_id) < ($2, $3) AND l.queue = $5
ORDER BY l.since DESC, l.message_id DESC
LIMIT $4
