-- Finds those of these claims whose messages have all ended under them.
SELECT l.fence FROM ichido_leases l
WHERE l.fence IN (SELECT value FROM json_each(?1)) AND NOT EXISTS (
    SELECT 1 FROM json_each(l.message_ids) AS i
    WHERE NOT EXISTS (SELECT 1 FROM ichido_events e WHERE e.message_id = unhex(i.value) AND e.fence = l.fence)
)
