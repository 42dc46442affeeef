SELECT number, since_position, until_position, sealed_at, first_at, last_at, count, total, root, previous, keyed, mac
FROM ichido.seals ORDER BY number DESC LIMIT 1
