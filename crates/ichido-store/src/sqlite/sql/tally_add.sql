-- Adds to the counts of this minute. The row is repeated for each of them.
INSERT INTO ichido_tallies (minute, about, kind, slot, count, micros)
VALUES
(?, ?, ?, ?, ?, ?)
ON CONFLICT (minute, about, kind, slot) DO UPDATE SET count = count + excluded.count, micros = micros + excluded.micros
