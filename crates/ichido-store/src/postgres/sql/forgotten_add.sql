INSERT INTO ichido.forgotten (message_id, at, entries, listed, mac)
SELECT i.message_id, $2, i.entries, i.entries, i.mac FROM unnest($1::uuid[], $3::integer[], $4::bytea[]) AS i (message_id, entries, mac)
ON CONFLICT DO NOTHING
