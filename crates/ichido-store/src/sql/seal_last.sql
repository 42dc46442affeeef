SELECT number, since_position, until_position, sealed_at, first_at, last_at, count, total, root, previous, keyed, mac
FROM ichido.seals WHERE number = (SELECT max(number) FROM ichido.seals)
