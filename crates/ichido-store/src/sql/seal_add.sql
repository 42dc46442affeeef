INSERT INTO ichido.seals
    (number, since_position, until_position, sealed_at, first_at, last_at, count, total, root, previous, keyed, mac, leaves)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
