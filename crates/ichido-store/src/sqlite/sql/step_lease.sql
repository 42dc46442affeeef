-- Finds the claim under which a message is being sent. Leases are few, so one operator's request may read all of them.
SELECT l.fence, l.node, l.claimed_at FROM ichido_leases l
WHERE EXISTS (SELECT 1 FROM json_each(l.message_ids) AS i WHERE i.value = lower(hex(?1)))
  AND NOT EXISTS (SELECT 1 FROM ichido_events e WHERE e.message_id = ?1 AND e.fence = l.fence)
ORDER BY l.fence DESC
LIMIT 1
