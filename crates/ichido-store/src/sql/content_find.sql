SELECT message_id FROM ichido.contents WHERE queue = $1 AND identity = $2 AND content = $3
