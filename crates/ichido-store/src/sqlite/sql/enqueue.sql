-- Inserts messages; a trigger makes them claimable in the same statement. The row is repeated for each message.
INSERT INTO ichido_messages
    (id, queue, identity, key, digest, content_type, request, trace, priority, max_attempts, due, replacement_of, created_at, hops,
     trace_id, item)
VALUES
(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (queue, identity, key) DO NOTHING
