SELECT queue, priority, tries_allowed, coalesce(due, created_at) AS due FROM ichido_messages WHERE id = ?1
