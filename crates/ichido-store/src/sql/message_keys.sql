-- The keys of messages, newest first, to look for a hash.
SELECT id, key, created_at FROM ichido.messages WHERE id < $1 ORDER BY id DESC LIMIT $2
