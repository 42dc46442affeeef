-- Marks the facts of a stopping node as ended: those of the other nodes that serve the queue count.
UPDATE ichido.queue_facts SET ended = true WHERE node = $1
