-- The counts of a subject per step, from its hours, and from the minutes after the last hour that was rolled up.
-- The time is read once; otherwise no index could be used for it. Pairs are compared, so only the indexes of the subject have the range.
WITH rolled AS MATERIALIZED (
    SELECT COALESCE(max(hour) + interval '1 hour', '-infinity') AS until FROM ichido.counter_hours
    WHERE hour <= (SELECT clock_timestamp() + $6::bigint * interval '1 microsecond'))
SELECT date_bin($4::bigint * interval '1 microsecond', c.at, $2) AS at, c.kind, c.slot,
       sum(c.count)::bigint AS count, sum(c.micros)::bigint AS micros
FROM (
    SELECT hour AS at, kind, slot, count, micros FROM ichido.counter_hours
    WHERE about = $1 AND (about, hour) >= ($1, $2) AND (about, hour) < ($1, $3)
    UNION ALL
    SELECT minute, kind, slot, count, micros FROM ichido.counters
    WHERE about = $1 AND (about, minute) >= ($1, GREATEST($2, (SELECT until FROM rolled))) AND (about, minute) < ($1, $3)
) AS c
GROUP BY 1, 2, 3
LIMIT $5
