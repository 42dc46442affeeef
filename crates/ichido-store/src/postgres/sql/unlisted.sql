-- Finds entries of transactions that have not started: nobody can have written them honestly.
SELECT message_id, fence, step, at FROM ichido.events
WHERE position >= $5 AND (message_id, fence, step) > ($1, $2, $3)
ORDER BY message_id, fence, step LIMIT $4
