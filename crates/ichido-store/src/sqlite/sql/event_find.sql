-- Finds how these messages ended under these claims, if they did, and what proves that an earlier attempt did the work.
SELECT e.message_id, i.value ->> 1 AS fence, e.kind, e.to_state, e.step = 2 AS proof
FROM json_each(?1) AS i
CROSS JOIN ichido_events e ON e.message_id = unhex(i.value ->> 0) AND ((e.fence = i.value ->> 1 AND e.step = 0 AND e.claimed_at IS NOT NULL) OR e.step = 2)
