SELECT queue, priority, max_attempts, coalesce(due, created_at) AS due, ?2 AS now FROM ichido_messages WHERE id = ?1
