UPDATE ichido.tokens SET revoked_at = clock_timestamp() + $2 * interval '1 microsecond' WHERE id = $1 AND revoked_at IS NULL RETURNING name
