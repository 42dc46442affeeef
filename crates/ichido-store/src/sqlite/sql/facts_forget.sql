-- Deletes the facts of nodes that were not seen for long, for the queues that this node serves.
DELETE FROM ichido_queue_facts AS f
WHERE queue IN (SELECT queue FROM ichido_queue_facts WHERE node = ?1)
  AND EXISTS (SELECT 1 FROM ichido_nodes n WHERE n.id = f.node AND n.seen_at < ?2 - ?3)
