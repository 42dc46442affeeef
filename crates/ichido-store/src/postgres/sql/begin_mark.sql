-- The marks of calls that are about to begin, for claims that still stand and messages that have not ended under them and are not
-- proven to be done. A mark is made once: a message that is being given back makes it too, and a call that meets that one waits for its end.
WITH held AS (SELECT fence FROM ichido.leases WHERE fence = ANY ($2) ORDER BY fence FOR SHARE)
INSERT INTO ichido.begun (message_id, fence)
SELECT i.message_id, i.fence
FROM unnest($1::uuid[], $2::bigint[]) AS i (message_id, fence) JOIN held USING (fence)
WHERE NOT EXISTS (SELECT 1 FROM ichido.events e WHERE e.message_id = i.message_id AND (e.fence = i.fence OR e.step = 2))
-- Said again here: a join gives its rows in whatever order its plan has them, and two nodes may have different plans.
ORDER BY i.message_id, i.fence
ON CONFLICT DO NOTHING
RETURNING message_id, fence
