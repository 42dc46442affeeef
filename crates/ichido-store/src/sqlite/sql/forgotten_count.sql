-- Counts the sealed entries of each of these messages.
SELECT e.message_id, count(*) AS entries
FROM json_each(?1) AS i
CROSS JOIN ichido_events e ON e.message_id = unhex(i.value)
WHERE NOT EXISTS (SELECT 1 FROM ichido_unsealed u WHERE u.message_id = e.message_id AND u.fence = e.fence AND u.step = e.step)
GROUP BY e.message_id
