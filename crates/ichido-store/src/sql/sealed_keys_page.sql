SELECT until_at, since_at, id, records FROM ichido.sealed_keys
WHERE (until_at, since_at, id) > ($1, $2, $3)
ORDER BY until_at, since_at, id LIMIT $4
