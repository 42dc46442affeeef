SELECT queue, state, count FROM ichido_counts WHERE count <> 0 ORDER BY queue, state
