SELECT message_id, at, entries, mac FROM ichido.forgotten WHERE message_id = ANY ($1)
