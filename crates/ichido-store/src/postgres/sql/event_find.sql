-- Finds how these messages ended under these claims, if they did, and what proves that an earlier attempt did the work.
SELECT e.message_id, i.fence, e.kind, e.to_state, e.step = 2 AS proof
FROM unnest($1::uuid[], $2::bigint[]) AS i (message_id, fence)
JOIN ichido.events e ON e.message_id = i.message_id AND ((e.fence = i.fence AND e.step = 0 AND e.claimed_at IS NOT NULL) OR e.step = 2)
