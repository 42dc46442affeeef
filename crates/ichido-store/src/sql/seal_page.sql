-- Lists seals after a number, in order.
SELECT number, since_position, until_position, sealed_at, first_at, last_at, count, total, root, previous, keyed, mac, leaves, pruned
FROM ichido.seals WHERE number > $1 ORDER BY number LIMIT $2
