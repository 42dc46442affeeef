-- Finds the claim under which a message is being sent, like step_lease, with the node that holds it.
SELECT l.node AS id, l.lease_until, n.name, n.seen_at FROM ichido.leases l
LEFT JOIN ichido.nodes n ON n.id = l.node
WHERE $1 = ANY (l.message_ids)
  AND NOT EXISTS (SELECT 1 FROM ichido.events e WHERE e.message_id = $1 AND e.fence = l.fence)
ORDER BY l.fence DESC
LIMIT 1
