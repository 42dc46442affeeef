-- The counts of language models, for the minutes that began within the window. '!' follows the space after "model". The time is read
-- once; otherwise no index could be used for it.
WITH found AS MATERIALIZED (
    SELECT about, kind, slot, count, micros FROM ichido.counters
    WHERE about > 'model ' AND about < 'model!'
      AND minute >= (SELECT clock_timestamp() + ($2::bigint - $1::bigint) * interval '1 microsecond'))
SELECT about, kind, slot, sum(count)::bigint AS count, sum(micros)::bigint AS micros
FROM found
GROUP BY about, kind, slot
LIMIT $3
