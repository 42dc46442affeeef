UPDATE ichido_answers SET held_until = ?3 + ?2 WHERE holder = ?1
