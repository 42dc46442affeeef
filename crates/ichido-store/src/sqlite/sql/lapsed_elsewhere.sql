-- Finds claims of queues other than these (?1) that nobody has rescued: they lapsed more than ?2 ago, or end later than any
-- lease (?5) can, because the clock was ahead when they were taken. Each half uses the index; the second is empty unless a
-- clock was set back.
SELECT queue, count(*) AS claims, sum(json_array_length(message_ids)) AS messages, min(min(lease_until, ?3 - ?2)) AS since
FROM ichido_leases
WHERE (lease_until <= ?3 - ?2 OR lease_until > ?3 + ?5) AND queue NOT IN (SELECT value FROM json_each(?1))
GROUP BY queue
ORDER BY queue
LIMIT ?4
