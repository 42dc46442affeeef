-- Sums the minutes of the first hour after the last one that was rolled up, if it ended long enough ago. Hours in the future, from
-- before a clock was set back, do not count as rolled up.
INSERT INTO ichido_counter_hours (about, hour, kind, slot, count, micros)
SELECT c.about, n.hour, c.kind, c.slot, sum(c.count), sum(c.micros)
FROM (
    SELECT f.minute - f.minute % 3600000000 AS hour FROM (
        SELECT min(minute) AS minute FROM ichido_counters
        WHERE minute >= COALESCE((SELECT max(hour) + 3600000000 FROM ichido_counter_hours WHERE hour <= ?2), 0)) AS f
) AS n CROSS JOIN ichido_counters AS c
WHERE c.minute >= n.hour AND c.minute < n.hour + 3600000000 AND n.hour + ?1 <= ?2
GROUP BY c.about, n.hour, c.kind, c.slot
ON CONFLICT (about, hour, kind, slot) DO UPDATE SET count = excluded.count, micros = excluded.micros
