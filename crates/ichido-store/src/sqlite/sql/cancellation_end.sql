DELETE FROM ichido_cancellations WHERE message_id IN (SELECT unhex(value) FROM json_each(?1))
