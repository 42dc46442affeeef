INSERT INTO ichido.queues (name, paused, paused_by, changed_at)
SELECT $1, $2, $3, clock_timestamp() + $4 * interval '1 microsecond'
ON CONFLICT (name) DO UPDATE SET paused = excluded.paused, paused_by = excluded.paused_by, changed_at = excluded.changed_at
