-- Returns the requests of these messages.
SELECT m.id AS message_id, m.content_type, m.request, m.priority, m.max_attempts, m.due, m.hops
FROM json_each(?1) AS i
CROSS JOIN ichido_messages m ON m.id = unhex(i.value)
