-- Claims of other queues than these (?1) that lapsed before ?2 ago, or were taken while the clock was ahead and end later than any lease
-- (?5) can, and that nobody has rescued since. Each half is searched by the index; the second is empty but after a clock was set back.
SELECT queue, count(*) AS claims, sum(json_array_length(message_ids)) AS messages, min(min(lease_until, ?3 - ?2)) AS since
FROM ichido_leases
WHERE (lease_until <= ?3 - ?2 OR lease_until > ?3 + ?5) AND queue NOT IN (SELECT value FROM json_each(?1))
GROUP BY queue
ORDER BY queue
LIMIT ?4
