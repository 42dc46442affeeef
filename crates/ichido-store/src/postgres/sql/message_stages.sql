SELECT id, status, attempts FROM ichido.message WHERE id = ANY ($1)
