INSERT INTO ichido_tokens (id, name, role, identity, queues, hash, created_at, expires_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?8, ?8 + ?7)
