-- Held, or failed without a further attempt.
UPDATE entry SET state = ?2, code = ?3, reason = ?4 WHERE id = ?1 AND state = 'waiting'
