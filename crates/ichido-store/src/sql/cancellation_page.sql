SELECT message_id FROM ichido.cancellations WHERE message_id > $1 ORDER BY message_id LIMIT $2
