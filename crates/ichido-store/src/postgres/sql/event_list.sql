SELECT * FROM ichido.events WHERE message_id = $1 ORDER BY fence, step
