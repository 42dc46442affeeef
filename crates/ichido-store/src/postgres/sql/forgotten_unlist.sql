-- Subtracts the entries of these messages that a seal no longer lists. Entries that no seal lists need no reason to be missing.
WITH fewer AS (SELECT message_id, count FROM unnest($1::uuid[], $2::integer[]) AS i (message_id, count)),
over AS (DELETE FROM ichido.forgotten f USING fewer WHERE f.message_id = fewer.message_id AND f.listed <= fewer.count)
UPDATE ichido.forgotten f SET listed = f.listed - fewer.count FROM fewer
WHERE f.message_id = fewer.message_id AND f.listed > fewer.count
