SELECT queue, parallelism, set_by, set_at FROM ichido.queue_parallelism ORDER BY queue
