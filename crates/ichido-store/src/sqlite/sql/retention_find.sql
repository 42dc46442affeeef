-- Finds finished messages that are old enough, a bounded number at a time. Dead and parked ones are kept. A key of the ledger
-- outlives its message, never the other way round: the sweep checks the message first.
SELECT m.id, m.queue, e.to_state
FROM ichido_messages m
CROSS JOIN ichido_events e ON e.message_id = m.id
    AND (e.fence, e.step) = (SELECT x.fence, x.step FROM ichido_events x WHERE x.message_id = m.id ORDER BY x.fence DESC, x.step DESC LIMIT 1)
WHERE m.id < ?1 AND e.to_state IN ('sent', 'cancelled') AND e.at < ?2
ORDER BY m.id
LIMIT ?3
