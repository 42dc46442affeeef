DELETE FROM ichido.letters WHERE message_id = ANY ($1)
