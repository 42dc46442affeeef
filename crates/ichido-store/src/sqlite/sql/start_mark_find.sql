-- Finds which of these calls have started, as far as they are marked.
SELECT b.message_id, b.fence
FROM json_each(?1) AS i
CROSS JOIN ichido_start_marks b ON b.fence = i.value ->> 1 AND b.message_id = unhex(i.value ->> 0)
