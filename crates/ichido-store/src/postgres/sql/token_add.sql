INSERT INTO ichido.tokens (id, name, role, identity, queues, hash, created_at, expires_at)
SELECT $1, $2, $3, $4, $5, $6, now.at, now.at + $7 * interval '1 microsecond'
FROM (SELECT clock_timestamp() + $8 * interval '1 microsecond' AS at) now
