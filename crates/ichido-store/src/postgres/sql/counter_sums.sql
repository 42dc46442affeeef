-- The time is read once; otherwise no index could be used for it. The rows are found before they are grouped; otherwise the whole
-- index that has the order of the groups might be read.
WITH found AS MATERIALIZED (
    SELECT about, kind, slot, count, micros FROM ichido.counters
    WHERE minute >= (SELECT clock_timestamp() + ($2::bigint - $1::bigint) * interval '1 microsecond'))
SELECT about, kind, slot, sum(count)::bigint AS count, sum(micros)::bigint AS micros
FROM found
GROUP BY about, kind, slot
LIMIT $3
