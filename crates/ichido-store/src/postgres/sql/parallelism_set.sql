INSERT INTO ichido.queue_parallelism (queue, parallelism, set_by, set_at)
SELECT $1, $2, $3, clock_timestamp() + $4 * interval '1 microsecond'
ON CONFLICT (queue) DO UPDATE SET parallelism = excluded.parallelism, set_by = excluded.set_by, set_at = excluded.set_at
