-- Finds ended messages of one identity in one queue, a bounded number at a time, including dead letters that a person has
-- closed.
SELECT m.id, m.queue, CASE WHEN l.message_id IS NULL THEN e.to_state ELSE 'closed' END AS to_state
FROM ichido_messages m
CROSS JOIN ichido_events e ON e.message_id = m.id
    AND (e.fence, e.step) = (SELECT x.fence, x.step FROM ichido_events x WHERE x.message_id = m.id ORDER BY x.fence DESC, x.step DESC LIMIT 1)
LEFT JOIN ichido_dead_letters l ON l.message_id = m.id
WHERE m.queue = ?1 AND m.identity = ?2 AND (e.to_state IN ('sent', 'cancelled') OR l.closed <> 'open')
LIMIT ?3
