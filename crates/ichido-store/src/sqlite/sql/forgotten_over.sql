-- Entries that no seal lists need no reason to be missing.
DELETE FROM ichido_forgotten WHERE listed <= 0 AND message_id IN (SELECT unhex(value ->> 0) FROM json_each(?1))
