-- Skips questions that a run is asking now.
DELETE FROM ichido_answers WHERE id IN (
    SELECT id FROM ichido_answers WHERE topic = ?1 AND (holder IS NULL OR held_until <= ?3) LIMIT ?2)
