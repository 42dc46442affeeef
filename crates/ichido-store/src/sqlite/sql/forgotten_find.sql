SELECT message_id, at, entries, mac FROM ichido_forgotten WHERE message_id IN (SELECT unhex(value) FROM json_each(?1))
