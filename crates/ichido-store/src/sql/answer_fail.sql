-- No answer came of a call. Whoever has taken the question over has counted it as lost.
UPDATE ichido.answers SET holder = NULL, held_until = NULL, lost = lost + $3 WHERE id = $1 AND holder = $2
