DELETE FROM ichido.cancellations WHERE message_id = ANY ($1)
