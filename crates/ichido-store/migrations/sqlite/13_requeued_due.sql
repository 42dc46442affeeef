-- A message that a person sent again is due from then on, and not from its first time. Its last 32 events tell, as in work_claim.
-- A message as one row. A due failed message is claimed like a queued one, and shown as failed until then.
-- SQLite has no LATERAL: a subquery finds the last event by its key and reads one index entry.
DROP VIEW ichido_message;
CREATE VIEW ichido_message AS
SELECT m.id, m.queue, m.identity, m.key AS idempotency_key, m.content_type, m.request, m.digest AS request_digest,
       CASE
           WHEN l.message_id IS NOT NULL THEN l.state
           WHEN s.message_id IS NOT NULL THEN s.state
           WHEN r.message_id IS NOT NULL THEN 'queued'
           WHEN e.to_state IN ('sent', 'cancelled') THEN e.to_state
           ELSE 'sending'
       END AS status,
       -- An attempt in flight counts; its event is written when it ends.
       coalesce(l.attempts, s.attempts, r.attempts, e.attempts + (e.to_state NOT IN ('sent', 'cancelled')), 1) AS attempts,
       max(coalesce(l.attempts, s.attempts, r.attempts, e.attempts + (e.to_state NOT IN ('sent', 'cancelled')), 1) - 1, 0) AS retry_count,
       m.max_attempts,
       CASE
           WHEN s.message_id IS NOT NULL THEN s.due
           WHEN r.last_fence IS NOT NULL THEN coalesce((
               SELECT max(q.at) FROM (
                   SELECT x.kind, x.at FROM ichido_events x WHERE x.message_id = m.id ORDER BY x.fence DESC LIMIT 32
               ) q WHERE q.kind IN ('requeued', 'decided')), m.due, m.created_at)
           WHEN r.message_id IS NOT NULL THEN coalesce(m.due, m.created_at)
       END AS next_attempt,
       f.code AS last_error,
       f.excerpt AS last_error_text,
       coalesce(e.effect, 'not_done') AS effect,
       m.priority, m.hops, m.trace, m.trace_id, m.item, m.replacement_of,
       m.created_at,
       coalesce(e.at, m.created_at) AS updated_at
FROM ichido_messages m
LEFT JOIN ichido_dead_letters l ON l.message_id = m.id
LEFT JOIN ichido_scheduled s ON s.message_id = m.id
LEFT JOIN ichido_ready r ON r.queue = m.queue AND r.priority = m.priority AND r.message_id = m.id
LEFT JOIN ichido_events e ON e.message_id = m.id
    AND (e.fence, e.step) = (SELECT x.fence, x.step FROM ichido_events x WHERE x.message_id = m.id ORDER BY x.fence DESC, x.step DESC LIMIT 1)
LEFT JOIN ichido_events f ON f.message_id = m.id
    AND (f.fence, f.step) = (SELECT x.fence, x.step FROM ichido_events x WHERE x.message_id = m.id AND x.code IS NOT NULL ORDER BY x.fence DESC, x.step DESC LIMIT 1);
