-- Counts the messages of each queue that died within a span and are still dead, whether or not a person has closed them. Each
-- kind is counted up to the limit.
SELECT q.queue, sum(found.count)::bigint AS count
FROM unnest($1::text[]) AS q (queue)
CROSS JOIN (VALUES ('open'), ('discarded'), ('replaced')) AS c (closed)
CROSS JOIN LATERAL (
    SELECT count(*) AS count FROM (
        SELECT FROM ichido.dead_letters l
        WHERE l.state = 'dead' AND l.closed = c.closed AND l.queue = q.queue AND l.since >= $2 AND l.since < $3
        LIMIT $4
    ) AS counted
) AS found
GROUP BY q.queue
