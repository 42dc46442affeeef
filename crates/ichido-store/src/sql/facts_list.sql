-- The kind of key exists: a worker settles it before it publishes.
SELECT f.queue, f.guarantee, f.keeps_for, f.requeue, f.max_attempts, f.horizon, f.ended, k.kind, n.id, n.name, n.started_at, n.seen_at, n.gone
FROM ichido.queue_facts f
JOIN ichido.nodes n ON n.id = f.node
JOIN ichido.queue_keys k ON k.queue = f.queue
ORDER BY f.queue, n.seen_at DESC, n.id
