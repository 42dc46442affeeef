DELETE FROM ichido_ledger WHERE name IN (SELECT unhex(value) FROM json_each(?1))
