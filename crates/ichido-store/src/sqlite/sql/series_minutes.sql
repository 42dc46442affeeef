-- The counts of a subject per step, from its minutes.
SELECT minute - (minute - ?2) % ?4 AS at, kind, slot, sum(count) AS count, sum(micros) AS micros
FROM ichido_counters
WHERE about = ?1 AND minute >= ?2 AND minute < ?3
GROUP BY 1, 2, 3
LIMIT ?5
