-- Subtracts the entries of these messages that a seal no longer lists.
UPDATE ichido_forgotten AS f SET listed = f.listed - (i.value ->> 1) FROM json_each(?1) AS i WHERE f.message_id = unhex(i.value ->> 0)
