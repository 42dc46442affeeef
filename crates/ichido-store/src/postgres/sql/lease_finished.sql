-- Finds those of these claims whose messages have all ended under them.
SELECT l.fence FROM ichido.leases l
WHERE l.fence = ANY ($1) AND NOT EXISTS (
    SELECT 1 FROM unnest(l.message_ids) AS i (id)
    WHERE NOT EXISTS (SELECT 1 FROM ichido.events e WHERE e.message_id = i.id AND e.fence = l.fence)
)
