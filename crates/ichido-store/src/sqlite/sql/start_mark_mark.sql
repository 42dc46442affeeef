-- Marks calls that are about to start. Their claims must still be valid, and their messages must not have ended under them or
-- be proven done. A repetition, as after a lost response, returns the same: an existing mark is overwritten with itself, so it
-- is returned.
INSERT INTO ichido_start_marks (message_id, fence)
SELECT unhex(i.value ->> 0), i.value ->> 1
FROM json_each(?1) AS i
WHERE EXISTS (SELECT 1 FROM ichido_leases l WHERE l.fence = i.value ->> 1)
  AND NOT EXISTS (SELECT 1 FROM ichido_events e WHERE e.message_id = unhex(i.value ->> 0) AND (e.fence = i.value ->> 1 OR e.step = 2))
ON CONFLICT (fence, message_id) DO UPDATE SET fence = excluded.fence
RETURNING message_id, fence
