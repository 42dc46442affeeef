-- Finds rows that name a message that does not exist.
SELECT p.message_id
FROM (SELECT message_id FROM ichido.dead_letters
      UNION ALL SELECT message_id FROM ichido.scheduled
      UNION ALL SELECT message_id FROM ichido.ready) AS p
WHERE NOT EXISTS (SELECT 1 FROM ichido.messages m WHERE m.id = p.message_id)
LIMIT $1
