-- How these messages ended under these claims, where they have.
SELECT e.message_id, e.fence, e.kind, e.to_state
FROM json_each(?1) AS i
CROSS JOIN ichido_events e ON e.message_id = unhex(i.value ->> 0) AND e.fence = i.value ->> 1 AND e.step = 0
