SELECT 1 AS found FROM ichido.failure_group_deltas LIMIT 1
