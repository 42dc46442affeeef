-- The plus signs keep SQLite from reading the whole index that has the order of the groups.
SELECT about, kind, slot, sum(count) AS count, sum(micros) AS micros
FROM ichido_counters
WHERE minute >= ?2 - ?1
GROUP BY +about, +kind, +slot
LIMIT ?3
