-- Claims of other queues than these ($1) that lapsed before $2 ago, and that nobody has rescued since.
SELECT queue, count(*) AS claims, sum(cardinality(message_ids))::bigint AS messages, min(lease_until) AS since
FROM ichido.leases
WHERE lease_until <= (SELECT clock_timestamp() + ($3 - $2) * interval '1 microsecond') AND queue <> ALL ($1::text[])
GROUP BY queue
ORDER BY queue
LIMIT $4
