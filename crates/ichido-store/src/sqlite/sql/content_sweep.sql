-- Deletes contents whose window has ended, a bounded number at a time.
DELETE FROM ichido_contents
WHERE (queue, identity, content) IN (SELECT queue, identity, content FROM ichido_contents WHERE until <= ?2 ORDER BY until LIMIT ?1)
