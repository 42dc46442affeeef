-- Whether a message was sent by what its holder reported after its claim was over.
SELECT 1 FROM ichido.events WHERE message_id = $1 AND kind = 'late_success' AND to_state = 'sent' LIMIT 1
