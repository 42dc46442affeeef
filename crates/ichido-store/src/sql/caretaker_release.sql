-- A stopping node leaves its singleton tasks to the next one.
DELETE FROM ichido.caretakers WHERE node = $1
