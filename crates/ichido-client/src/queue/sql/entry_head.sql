-- The one whose turn it is: what was accepted first, of what is not failed and not held.
SELECT * FROM entry WHERE destination = ?1 AND state IN ('waiting', 'sending') ORDER BY id LIMIT 1
