-- Finds expired keys, a bounded number at a time, and whether an unfinished message still uses them.
SELECT l.name, l.message_id IS NOT NULL
           AND EXISTS (SELECT 1 FROM ichido_messages m WHERE m.id = l.message_id)
           AND NOT EXISTS (SELECT 1 FROM ichido_events e WHERE e.message_id = l.message_id AND e.to_state IN ('sent', 'cancelled')) AS held
FROM ichido_ledger l
WHERE l.expires_at <= ?1
ORDER BY l.expires_at
LIMIT ?2
