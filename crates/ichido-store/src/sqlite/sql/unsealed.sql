-- Returns what waits for a seal.
SELECT count(*) AS count, min(e.at) AS since
FROM ichido_unsealed u
CROSS JOIN ichido_events e ON e.message_id = u.message_id AND e.fence = u.fence AND e.step = u.step
