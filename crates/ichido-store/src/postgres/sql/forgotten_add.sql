INSERT INTO ichido.forgotten (message_id, at, entries, listed, mac)
SELECT i.message_id, $4, i.entries, i.entries, i.mac FROM unnest($1::uuid[], $2::integer[], $3::bytea[]) AS i (message_id, entries, mac)
ON CONFLICT DO NOTHING
