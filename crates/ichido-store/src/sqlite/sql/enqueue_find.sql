SELECT m.id, m.digest, m.content_type, i.key AS position
FROM json_each(?1) AS i
CROSS JOIN ichido_messages m ON m.queue = i.value ->> 0 AND m.identity = i.value ->> 1 AND m.key = i.value ->> 2
