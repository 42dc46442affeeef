SELECT id, status, tries FROM ichido.message WHERE id = ANY ($1)
