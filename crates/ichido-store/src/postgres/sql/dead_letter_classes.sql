-- Counts letters that match a filter, up to a limit, by what decides about them. The letters are found like a page of them.
SELECT l.queue, l.code, l.effect, count(*) AS count, max(l.doubt_since) AS doubt_since, max(l.in_flight_until) AS in_flight_until
FROM (
    SELECT l.queue, l.code, l.effect, l.doubt_since, l.in_flight_until
    FROM ichido.dead_letters l
    WHERE l.state = $1 AND l.closed = $2 AND ($3::text IS NULL OR l.queue = $3) AND l.since < $4 AND l.since >= $5
      AND ($6::text IS NULL OR l.code = $6) AND ($7::text IS NULL OR l.effect = $7)
      AND ($8::text IS NULL OR EXISTS (SELECT FROM ichido.messages m WHERE m.id = l.message_id AND m.identity = $8))
      AND ($9::text IS NULL OR position($9 IN l.error) > 0)
      AND ($10::uuid IS NULL OR l.group_id = $10)
    LIMIT $16
) AS l
LEFT JOIN unnest($14::text[], $15::timestamptz[]) AS k (queue, forgotten) ON k.queue = l.queue
GROUP BY l.queue, l.code, l.effect, l.doubt_since IS NULL, l.doubt_since > $12, l.in_flight_until > $11, l.doubt_since <= k.forgotten
LIMIT $13
