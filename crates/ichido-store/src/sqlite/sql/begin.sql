-- The first look of every write transaction: the moment all of it happens at, and the last fence that was drawn.
SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + ?1 AS now, last FROM ichido_fence
