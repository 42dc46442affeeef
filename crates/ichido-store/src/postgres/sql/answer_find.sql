SELECT id, held_until, lost, answer, answered_at FROM ichido.answers WHERE id = ANY ($1)
