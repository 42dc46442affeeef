-- Which of these calls were marked before, as when the answer was lost, and may still begin. A statement of its own, whose snapshot
-- sees the end of what was given back while the mark was waited for.
SELECT b.message_id, b.fence
FROM unnest($1::uuid[], $2::bigint[]) AS i (message_id, fence)
JOIN ichido.begun b ON b.fence = i.fence AND b.message_id = i.message_id
JOIN ichido.leases l ON l.fence = i.fence
WHERE NOT EXISTS (SELECT 1 FROM ichido.events e WHERE e.message_id = i.message_id AND (e.fence = i.fence OR e.step = 2))
