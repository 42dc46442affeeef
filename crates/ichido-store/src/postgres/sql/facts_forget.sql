-- Deletes the facts of nodes that were not seen for long, for the queues that this node serves.
DELETE FROM ichido.queue_facts f
WHERE queue IN (SELECT queue FROM ichido.queue_facts WHERE node = $1)
  AND EXISTS (SELECT 1 FROM ichido.nodes n
              WHERE n.id = f.node AND n.seen_at < clock_timestamp() + ($2 - $3) * interval '1 microsecond')
