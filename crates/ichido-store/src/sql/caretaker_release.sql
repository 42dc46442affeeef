-- A node that stops leaves its duties to the next one.
DELETE FROM ichido.caretakers WHERE node = $1
