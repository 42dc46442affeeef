-- Marks calls that are about to start. Their claims must still be valid, and their messages must not have ended under them or
-- be proven done. A mark is made once. Giving a message back makes it too, and a call that meets that mark waits for its
-- transaction to end.
WITH held AS (SELECT fence FROM ichido.leases WHERE fence = ANY ($2) ORDER BY fence FOR SHARE)
INSERT INTO ichido.start_marks (message_id, fence)
SELECT i.message_id, i.fence
FROM unnest($1::uuid[], $2::bigint[]) AS i (message_id, fence) JOIN held USING (fence)
WHERE NOT EXISTS (SELECT 1 FROM ichido.events e WHERE e.message_id = i.message_id AND (e.fence = i.fence OR e.step = 2))
-- Sorted again: a join returns rows in the order of its plan, and two nodes may have different plans.
ORDER BY i.message_id, i.fence
ON CONFLICT DO NOTHING
RETURNING message_id, fence
