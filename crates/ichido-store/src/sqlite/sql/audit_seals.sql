-- Returns the seals of entries that are sealed.
SELECT e.message_id, e.fence, e.step, e.seal
FROM json_each(?1) AS i
CROSS JOIN ichido_events e ON e.message_id = unhex(i.value ->> 0) AND e.fence = i.value ->> 1 AND e.step = i.value ->> 2
WHERE NOT EXISTS (SELECT 1 FROM ichido_unsealed u WHERE u.message_id = e.message_id AND u.fence = e.fence AND u.step = e.step)
