-- Locks one lapsed lease, of the queues $2 if any are named: one that has expired, or, if $3 is true, one that ends later than
-- any lease ($4) can, because the clock was ahead when it was taken. It is a separate statement: the next one finds the
-- remaining messages, and its snapshot includes every settle that held the lock before us.
SELECT l.fence, l.queue, l.node, l.claimed_at, l.start_marks, l.suspect, l.guarantee, l.keeps_for, l.max_time_in_flight, l.message_ids, now.at AS now
FROM ichido.leases l, (SELECT clock_timestamp() + $1 * interval '1 microsecond' AS at) AS now
WHERE l.lease_until > (SELECT CASE WHEN $3 THEN clock_timestamp() + $1 * interval '1 microsecond' + $4 * interval '1 microsecond' ELSE '-infinity' END)
  AND l.lease_until <= (SELECT CASE WHEN $3 THEN 'infinity' ELSE clock_timestamp() + $1 * interval '1 microsecond' END)
  AND ($2::text[] IS NULL OR l.queue = ANY ($2))
ORDER BY l.lease_until
LIMIT 1
FOR UPDATE OF l SKIP LOCKED
