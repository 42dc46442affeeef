SELECT id, name, role, identity, queues, hash, created_at, expires_at, revoked_at
FROM ichido_tokens ORDER BY created_at DESC, id DESC LIMIT ?1
