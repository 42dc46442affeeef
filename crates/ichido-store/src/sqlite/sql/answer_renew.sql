UPDATE ichido_answers SET held_until = ?2 WHERE holder = ?1
