INSERT INTO ichido.sealed_keys (until_at, since_at, id, records) VALUES ($1, $2, $3, $4)
