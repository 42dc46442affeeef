UPDATE ichido_dead_letters SET asked_at = ?2 WHERE message_id IN (SELECT unhex(value) FROM json_each(?1))
