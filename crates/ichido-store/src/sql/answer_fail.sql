-- A call ended without an answer. A run that has claimed the question since has already counted the call as lost.
UPDATE ichido.answers SET holder = NULL, held_until = NULL, lost = lost + $3 WHERE id = $1 AND holder = $2
