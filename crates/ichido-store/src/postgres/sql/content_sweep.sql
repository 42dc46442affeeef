-- Forgets contents whose window was over at a moment ($2), a bounded number at a time. One that is taken over just now is locked, or no longer over.
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
