DELETE FROM ichido.cancellations WHERE message_id = $1
