DELETE FROM ichido_unsealed WHERE message_id IN (SELECT unhex(value) FROM json_each(?1))
