-- A repeated request changes nothing.
INSERT INTO ichido.cancellations (message_id, requested_at, actor, reason)
VALUES ($1, clock_timestamp() + $4 * interval '1 microsecond', $2, $3)
ON CONFLICT (message_id) DO NOTHING
