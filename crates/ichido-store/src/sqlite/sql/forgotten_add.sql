INSERT OR IGNORE INTO ichido_forgotten (message_id, at, entries, listed, mac)
SELECT unhex(value ->> 0), ?2, value ->> 1, value ->> 1, unhex(value ->> 2) FROM json_each(?1)
