-- A node that stops leaves its duties to the next one.
DELETE FROM ichido_caretakers WHERE node = ?1
