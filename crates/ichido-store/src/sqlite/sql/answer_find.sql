SELECT id, held_until, lost, answer, answered_at FROM ichido_answers WHERE id IN (SELECT unhex(value) FROM json_each(?1))
