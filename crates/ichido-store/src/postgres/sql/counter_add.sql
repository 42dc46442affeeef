-- Adds to the counters of this minute. Rows are sorted, so two nodes cannot deadlock.
WITH now AS (SELECT date_trunc('minute', clock_timestamp() + $6 * interval '1 microsecond') AS minute)
INSERT INTO ichido.counters (minute, about, kind, slot, count, micros)
SELECT now.minute, i.about, i.kind, i.slot, i.count, i.micros
FROM unnest($1::text[], $2::text[], $3::smallint[], $4::bigint[], $5::bigint[]) AS i (about, kind, slot, count, micros), now
ON CONFLICT (minute, about, kind, slot)
DO UPDATE SET count = counters.count + excluded.count, micros = counters.micros + excluded.micros
