SELECT id, name, role, identity, queues, hash, created_at, expires_at, revoked_at
FROM ichido.tokens ORDER BY created_at DESC, id DESC LIMIT $1
