SELECT m.id, m.digest, m.content_type, i.position - 1 AS position
FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS i (queue, identity, key, position)
JOIN ichido.messages m ON m.queue = i.queue AND m.identity = i.identity AND m.key = i.key
