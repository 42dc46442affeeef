-- The time is read once; otherwise no index could be used for it.
SELECT about, kind, slot, sum(count)::bigint AS count, sum(micros)::bigint AS micros
FROM ichido.counters
WHERE minute >= (SELECT clock_timestamp() + ($2::bigint - $1::bigint) * interval '1 microsecond')
GROUP BY about, kind, slot
LIMIT $3
