SELECT message_id, queue, state FROM ichido_scheduled WHERE due <= ?1 ORDER BY due LIMIT ?2
