UPDATE ichido_fence SET last = ?1 WHERE last < ?1
