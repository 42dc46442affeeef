INSERT INTO ichido_counts (queue, state, count)
SELECT i.value ->> 0, i.value ->> 1, i.value ->> 2
FROM json_each(?1) AS i
WHERE true -- Without it, SQLite would parse ON as part of a join.
ON CONFLICT (queue, state) DO UPDATE SET count = count + excluded.count
