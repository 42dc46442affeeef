-- Finds whether a message was sent according to a report that its holder made after its claim ended.
SELECT 1 FROM ichido.events WHERE message_id = $1 AND kind = 'late_success' AND to_state = 'sent' LIMIT 1
