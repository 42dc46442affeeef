-- The claim under which a message is being sent. Leases are few; a person's question about one message may look at all of them.
SELECT l.fence, l.node, l.claimed_at FROM ichido.leases l
WHERE $1 = ANY (l.message_ids)
  AND NOT EXISTS (SELECT 1 FROM ichido.events e WHERE e.message_id = $1 AND e.fence = l.fence)
ORDER BY l.fence DESC
LIMIT 1
