-- The counts of a subject per step, from its hours, and from the minutes after the last hour that was rolled up.
SELECT c.at - (c.at - ?2) % ?4 AS at, c.kind, c.slot, sum(c.count) AS count, sum(c.micros) AS micros
FROM (
    SELECT hour AS at, kind, slot, count, micros FROM ichido_counter_hours
    WHERE about = ?1 AND hour >= ?2 AND hour < ?3
    UNION ALL
    SELECT minute, kind, slot, count, micros FROM ichido_counters
    WHERE about = ?1 AND minute < ?3
      AND minute >= max(?2, COALESCE((SELECT max(hour) + 3600000000 FROM ichido_counter_hours WHERE hour <= ?6), ?2))
) AS c
GROUP BY 1, 2, 3
LIMIT ?5
