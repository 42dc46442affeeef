-- Deletes contents whose window had ended at $2, a bounded number at a time. A row that is being replaced is locked, or its
-- window has not ended any more.
WITH over AS (
    SELECT c.queue, c.identity, c.content
    FROM ichido.contents c
    WHERE c.until <= $2
    ORDER BY c.until
    LIMIT $1
    FOR UPDATE SKIP LOCKED
)
DELETE FROM ichido.contents c USING over
WHERE c.queue = over.queue AND c.identity = over.identity AND c.content = over.content
