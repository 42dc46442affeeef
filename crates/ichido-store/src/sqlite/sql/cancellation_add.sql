-- A repeated request changes nothing.
INSERT INTO ichido_cancellations (message_id, requested_at, actor, reason)
VALUES (?1, ?4, ?2, ?3)
ON CONFLICT (message_id) DO NOTHING
