-- Finds claims of queues other than these ($1) that nobody has rescued: they lapsed more than $2 ago, or end later than any
-- lease ($5) can, because the clock was ahead when they were taken.
SELECT queue, count(*) AS claims, sum(cardinality(message_ids))::bigint AS messages, min(least(lease_until, clock_timestamp() + ($3 - $2) * interval '1 microsecond')) AS since
FROM ichido.leases
WHERE (lease_until <= (SELECT clock_timestamp() + ($3 - $2) * interval '1 microsecond')
       OR lease_until > (SELECT clock_timestamp() + $3 * interval '1 microsecond' + $5 * interval '1 microsecond'))
  AND queue <> ALL ($1::text[])
GROUP BY queue
ORDER BY queue
LIMIT $4
