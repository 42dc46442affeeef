-- Finds which of these calls were marked before (as after a lost response) and may still start. It is a separate statement, so
-- its snapshot includes messages that were given back while the mark waited.
SELECT b.message_id, b.fence
FROM unnest($1::uuid[], $2::bigint[]) AS i (message_id, fence)
JOIN ichido.start_marks b ON b.fence = i.fence AND b.message_id = i.message_id
JOIN ichido.leases l ON l.fence = i.fence
WHERE NOT EXISTS (SELECT 1 FROM ichido.events e WHERE e.message_id = i.message_id AND (e.fence = i.fence OR e.step = 2))
