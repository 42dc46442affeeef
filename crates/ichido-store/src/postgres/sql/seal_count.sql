-- Counts the entries of a span, no further than needed.
SELECT count(*) AS count
FROM (SELECT 1 FROM ichido.events WHERE position >= $1 AND position < $2 LIMIT $3) AS counted
