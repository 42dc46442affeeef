-- Rows that hold a message which is not there.
SELECT p.message_id
FROM (SELECT message_id FROM ichido_letters
      UNION ALL SELECT message_id FROM ichido_scheduled
      UNION ALL SELECT message_id FROM ichido_ready) AS p
WHERE NOT EXISTS (SELECT 1 FROM ichido_messages m WHERE m.id = p.message_id)
LIMIT ?1
