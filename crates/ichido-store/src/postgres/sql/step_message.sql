SELECT queue, priority, max_attempts, coalesce(due, created_at) AS due,
       (SELECT clock_timestamp() + $2 * interval '1 microsecond') AS now
FROM ichido.messages WHERE id = $1
