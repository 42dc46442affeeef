-- The first answer wins, even if another run holds the question by now.
UPDATE ichido_answers SET answer = ?2, answered_at = ?3, holder = NULL, held_until = NULL WHERE id = ?1 AND answer IS NULL
