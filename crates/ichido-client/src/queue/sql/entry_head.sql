-- The next entry: the first accepted one that is neither failed nor held.
SELECT * FROM entry WHERE destination = ?1 AND state IN ('waiting', 'sending') ORDER BY id LIMIT 1
