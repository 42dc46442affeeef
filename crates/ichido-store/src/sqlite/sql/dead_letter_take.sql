DELETE FROM ichido_dead_letters WHERE message_id IN (SELECT unhex(value) FROM json_each(?1))
