UPDATE ichido.dead_letters SET asked_at = clock_timestamp() + $2 * interval '1 microsecond' WHERE message_id = ANY ($1)
