-- Adds to the counters of this minute.
INSERT INTO ichido_counters (minute, about, kind, slot, count, micros)
SELECT ?2 - ?2 % 60000000, i.value ->> 0, i.value ->> 1, i.value ->> 2, i.value ->> 3, i.value ->> 4
FROM json_each(?1) AS i
WHERE true -- Without it, SQLite would parse ON as part of a join.
ON CONFLICT (minute, about, kind, slot) DO UPDATE SET count = count + excluded.count, micros = micros + excluded.micros
