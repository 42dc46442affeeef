SELECT about, kind, slot, sum(count) AS count, sum(micros) AS micros
FROM ichido_counters
WHERE minute >= ?2 - ?1
GROUP BY about, kind, slot
LIMIT ?3
