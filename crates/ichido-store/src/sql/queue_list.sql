SELECT name, paused, paused_by, changed_at FROM ichido.queues ORDER BY name
