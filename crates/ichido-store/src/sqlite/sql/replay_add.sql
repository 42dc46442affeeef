-- Adds to the replays of keys and messages.
INSERT INTO ichido_replays (about, count, first_at, last_at)
SELECT unhex(i.value ->> 0), i.value ->> 1, ?2, ?2
FROM json_each(?1) AS i
WHERE true -- Without it, SQLite would parse ON as part of a join.
ON CONFLICT (about) DO UPDATE SET count = count + excluded.count, last_at = excluded.last_at
