DELETE FROM ichido.queue_parallelism WHERE queue = $1 RETURNING parallelism
