-- Names the records of a key's hash: their names begin with it, so they are a range of the primary key. Bodies are large, and
-- are read one record at a time.
SELECT operation, identity, key FROM ichido.ledger WHERE name >= $1 AND name <= $2 ORDER BY name LIMIT $3
