SELECT paused FROM ichido_queues WHERE name = ?1
