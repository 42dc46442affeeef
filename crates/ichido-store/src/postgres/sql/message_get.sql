SELECT * FROM ichido.message WHERE id = $1
