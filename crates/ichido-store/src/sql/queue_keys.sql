-- The first kind wins, whatever later callers pass.
INSERT INTO ichido.queue_keys AS k (queue, kind) VALUES ($1, $2)
ON CONFLICT (queue) DO UPDATE SET kind = k.kind
RETURNING kind
