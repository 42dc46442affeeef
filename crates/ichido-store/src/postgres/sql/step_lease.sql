-- Finds the claim under which a message is being sent. Leases are few, so one operator's request may read all of them.
SELECT l.fence, l.node, l.claimed_at FROM ichido.leases l
WHERE $1 = ANY (l.message_ids)
  AND NOT EXISTS (SELECT 1 FROM ichido.events e WHERE e.message_id = $1 AND e.fence = l.fence)
ORDER BY l.fence DESC
LIMIT 1
