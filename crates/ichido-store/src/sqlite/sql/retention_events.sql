DELETE FROM ichido_events WHERE message_id IN (SELECT unhex(value) FROM json_each(?1))
