-- The first of equal contents within the window keeps its place; an outdated one is taken over.
INSERT INTO ichido_contents AS c (queue, identity, content, message_id, until) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (queue, identity, content) DO UPDATE
    SET message_id = excluded.message_id, until = excluded.until
    WHERE c.until <= ?6
RETURNING message_id
