DELETE FROM ichido_messages WHERE id IN (SELECT unhex(value) FROM json_each(?1))
