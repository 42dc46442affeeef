DELETE FROM ichido.dead_letters WHERE message_id = ANY ($1)
