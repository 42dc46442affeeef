SELECT paused FROM ichido.queues WHERE name = $1 FOR UPDATE
