SELECT name, paused, paused_by, changed_at FROM ichido_queues ORDER BY name
