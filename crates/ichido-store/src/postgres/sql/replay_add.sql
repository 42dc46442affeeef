-- Adds to the replays of keys and messages. Rows are sorted, so two nodes cannot deadlock.
INSERT INTO ichido.replays (about, count, first_at, last_at)
SELECT i.about, i.count, now.at, now.at
FROM unnest($1::uuid[], $2::bigint[]) AS i (about, count),
     (SELECT clock_timestamp() + $3 * interval '1 microsecond' AS at) AS now
ON CONFLICT (about) DO UPDATE SET count = replays.count + excluded.count, last_at = excluded.last_at
