-- The first read of every write transaction: its time, and the last issued fence.
SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + ?1 AS now, last FROM ichido_fence
