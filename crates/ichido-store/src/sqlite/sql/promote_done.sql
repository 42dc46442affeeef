DELETE FROM ichido_scheduled WHERE message_id IN (SELECT unhex(value) FROM json_each(?1))
