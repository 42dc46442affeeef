-- Sums the minutes of the first hour after the last one that was rolled up, if it ended long enough ago. Hours in the future, from
-- before a clock was set back, do not count as rolled up. The time is read once; otherwise no index could be used for it.
WITH now AS MATERIALIZED (SELECT clock_timestamp() + $2::bigint * interval '1 microsecond' AS at),
next AS MATERIALIZED (
    SELECT date_trunc('hour', min(minute), 'UTC') AS hour FROM ichido.counters
    WHERE minute >= (
        SELECT COALESCE(max(hour) + interval '1 hour', '-infinity') FROM ichido.counter_hours
        WHERE hour <= (SELECT at FROM now)))
INSERT INTO ichido.counter_hours (about, hour, kind, slot, count, micros)
SELECT c.about, n.hour, c.kind, c.slot, sum(c.count)::bigint, sum(c.micros)::bigint
FROM next AS n JOIN ichido.counters AS c ON c.minute >= n.hour AND c.minute < n.hour + interval '1 hour'
WHERE n.hour + $1::bigint * interval '1 microsecond' <= (SELECT at FROM now)
GROUP BY c.about, n.hour, c.kind, c.slot
-- Sorted, so two nodes cannot deadlock.
ORDER BY c.about, n.hour, c.kind, c.slot
ON CONFLICT (about, hour, kind, slot) DO UPDATE SET count = excluded.count, micros = excluded.micros
