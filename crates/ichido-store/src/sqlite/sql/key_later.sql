-- A key that an unfinished message still uses is checked again later.
UPDATE ichido_ledger SET expires_at = ?2 WHERE name IN (SELECT unhex(value) FROM json_each(?1))
