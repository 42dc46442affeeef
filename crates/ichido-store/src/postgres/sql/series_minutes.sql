-- The counts of a subject per step, from its minutes. Pairs are compared, so only the index of the subject has the range.
SELECT date_bin($4::bigint * interval '1 microsecond', minute, $2) AS at, kind, slot,
       sum(count)::bigint AS count, sum(micros)::bigint AS micros
FROM ichido.counters
WHERE about = $1 AND (about, minute) >= ($1, $2) AND (about, minute) < ($1, $3)
GROUP BY 1, 2, 3
LIMIT $5
