-- Like message_ids.sql, for a state that is not final, read from the small tables of live messages: a rare state is not
-- searched for among millions of finished messages. Each table is read in the order of ids, so no more than $2 rows of it are
-- read; `ready` has that order within a queue and a priority, whose pairs are found one after another. State and queue are
-- checked when the messages are read.
WITH RECURSIVE q (queue) AS (
    SELECT coalesce($4::text, (SELECT min(queue) FROM ichido.ready)) WHERE $3::text = 'queued'
    UNION ALL
    SELECT (SELECT r.queue FROM ichido.ready r WHERE r.queue > q.queue ORDER BY r.queue LIMIT 1)
    FROM q WHERE $4::text IS NULL AND q.queue IS NOT NULL
),
pair (queue, priority) AS (
    SELECT q.queue, (SELECT min(r.priority) FROM ichido.ready r WHERE r.queue = q.queue) FROM q
    UNION ALL
    SELECT p.queue, (SELECT r.priority FROM ichido.ready r
                     WHERE r.queue = p.queue AND r.priority > p.priority ORDER BY r.priority LIMIT 1)
    FROM pair p WHERE p.priority IS NOT NULL
)
SELECT DISTINCT id FROM (
    SELECT r.message_id AS id
    FROM pair p CROSS JOIN LATERAL (
        SELECT message_id FROM ichido.ready
        WHERE queue = p.queue AND priority = p.priority AND message_id < $1 ORDER BY message_id DESC LIMIT $2) AS r
    UNION ALL
    (SELECT message_id FROM ichido.scheduled
     WHERE $3 IN ('queued', 'failed') AND message_id < $1 ORDER BY message_id DESC LIMIT $2)
    UNION ALL
    SELECT l.message_id FROM (SELECT unnest(message_ids) AS message_id FROM ichido.leases WHERE $3 = 'sending') AS l
    WHERE l.message_id < $1
    UNION ALL
    (SELECT message_id FROM ichido.dead_letters
     WHERE $3 IN ('dead', 'parked') AND message_id < $1 ORDER BY message_id DESC LIMIT $2)) AS live
ORDER BY id DESC
LIMIT $2
