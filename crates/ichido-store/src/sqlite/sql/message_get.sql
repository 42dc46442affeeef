SELECT * FROM ichido_message WHERE id = ?1
