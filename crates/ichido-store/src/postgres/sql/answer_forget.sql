-- Skips questions that a run is asking now.
DELETE FROM ichido.answers WHERE id IN (
    SELECT id FROM ichido.answers
    WHERE topic = $1 AND (holder IS NULL OR held_until <= clock_timestamp() + $3 * interval '1 microsecond')
    LIMIT $2)
