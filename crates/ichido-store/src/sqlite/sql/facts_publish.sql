-- WHERE true: without it, SQLite would parse ON as part of a join.
INSERT INTO ichido_queue_facts (queue, node, guarantee, keeps_for, requeue, max_attempts, horizon, ended)
SELECT value ->> 0, ?1, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, 0
FROM json_each(?2) AS i WHERE true
ON CONFLICT (queue, node) DO UPDATE SET guarantee = excluded.guarantee, keeps_for = excluded.keeps_for, requeue = excluded.requeue,
    max_attempts = excluded.max_attempts, horizon = excluded.horizon, ended = 0
