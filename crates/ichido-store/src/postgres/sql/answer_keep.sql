-- The first answer wins, even if another run holds the question by now.
UPDATE ichido.answers
SET answer = $2, answered_at = clock_timestamp() + $3 * interval '1 microsecond', holder = NULL, held_until = NULL
WHERE id = $1 AND answer IS NULL
