-- Returns the requests of these messages, with the hash of their bytes.
SELECT id AS message_id, content_type, sha256(request) AS request_hash, priority, max_attempts, due, hops
FROM ichido.messages
WHERE id = ANY ($1)
