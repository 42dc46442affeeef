-- Finds the claim under which a message is being sent, like step_lease, with the node that holds it.
SELECT l.node AS id, l.lease_until, n.name, n.seen_at FROM ichido_leases l
LEFT JOIN ichido_nodes n ON n.id = l.node
WHERE EXISTS (SELECT 1 FROM json_each(l.message_ids) AS i WHERE i.value = lower(hex(?1)))
  AND NOT EXISTS (SELECT 1 FROM ichido_events e WHERE e.message_id = ?1 AND e.fence = l.fence)
ORDER BY l.fence DESC
LIMIT 1
