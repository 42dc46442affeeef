-- The counts of language models, for the minutes that began within the window. '!' follows the space after "model". The plus signs keep
-- SQLite from reading the whole index that has the order of the groups.
SELECT about, kind, slot, sum(count) AS count, sum(micros) AS micros
FROM ichido_counters
WHERE about > 'model ' AND about < 'model!' AND minute >= ?2 - ?1
GROUP BY +about, +kind, +slot
LIMIT ?3
