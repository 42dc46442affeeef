-- The first of equal contents within the window keeps its row. An expired one is replaced, if retention (?7) has reached its
-- time too.
INSERT INTO ichido_contents AS c (queue, identity, content, message_id, until) VALUES (?1, ?2, ?3, ?4, ?6 + ?5)
ON CONFLICT (queue, identity, content) DO UPDATE
    SET message_id = excluded.message_id, until = excluded.until
    WHERE c.until <= min(?6, ?7)
RETURNING message_id
