-- The marks of calls that are about to begin, for claims that still stand and messages that have not ended under them and are not
-- proven to be done. Asked
-- again, as after a lost answer, the answer is the same: a mark that is there is written over with itself, so that it is returned.
INSERT INTO ichido_begun (message_id, fence)
SELECT unhex(i.value ->> 0), i.value ->> 1
FROM json_each(?1) AS i
WHERE EXISTS (SELECT 1 FROM ichido_leases l WHERE l.fence = i.value ->> 1)
  AND NOT EXISTS (SELECT 1 FROM ichido_events e WHERE e.message_id = unhex(i.value ->> 0) AND (e.fence = i.value ->> 1 OR e.step = 2))
ON CONFLICT (fence, message_id) DO UPDATE SET fence = excluded.fence
RETURNING message_id, fence
