-- Claims of other queues than these (?1) that lapsed before a moment (?2), and that nobody has rescued since.
SELECT queue, count(*) AS claims, sum(json_array_length(message_ids)) AS messages, min(lease_until) AS since
FROM ichido_leases
WHERE lease_until <= ?2 AND queue NOT IN (SELECT value FROM json_each(?1))
GROUP BY queue
ORDER BY queue
LIMIT ?3
