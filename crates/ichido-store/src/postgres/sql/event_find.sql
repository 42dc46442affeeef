-- How these messages ended under these claims, where they have.
SELECT e.message_id, e.fence, e.kind, e.to_state
FROM unnest($1::uuid[], $2::bigint[]) AS i (message_id, fence)
JOIN ichido.events e ON e.message_id = i.message_id AND e.fence = i.fence AND e.step = 0
