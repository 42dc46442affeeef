-- The marks of calls that are about to begin, for claims that still stand and messages that have not ended under them. Asked
-- again, as after a lost answer, the answer is the same.
WITH held AS (SELECT fence FROM ichido.leases WHERE fence = ANY ($2) FOR SHARE),
calls AS (
    SELECT i.message_id, i.fence
    FROM unnest($1::uuid[], $2::bigint[]) AS i (message_id, fence) JOIN held USING (fence)
    WHERE NOT EXISTS (SELECT 1 FROM ichido.events e WHERE e.message_id = i.message_id AND e.fence = i.fence)
),
marked AS (INSERT INTO ichido.begun (message_id, fence) SELECT message_id, fence FROM calls ON CONFLICT DO NOTHING)
SELECT message_id, fence FROM calls
