SELECT * FROM ichido_events WHERE message_id = ?1 ORDER BY fence, step
