-- Like message_ids.sql, for a state that is not final, read from the small tables of live messages: a rare state is not
-- searched for among millions of finished messages. Each table is read in the order of ids, so no more than ?2 rows of it are
-- read; `ichido_ready` has that order within a queue and a priority, whose pairs are found one after another. State and queue
-- are checked when the messages are read. SQLite has no LATERAL: the last row of a pair's page is found first.
WITH RECURSIVE q (queue) AS (
    SELECT coalesce(?4, (SELECT min(queue) FROM ichido_ready)) WHERE ?3 = 'queued'
    UNION ALL
    SELECT (SELECT r.queue FROM ichido_ready r WHERE r.queue > q.queue ORDER BY r.queue LIMIT 1)
    FROM q WHERE ?4 IS NULL AND q.queue IS NOT NULL
),
pair (queue, priority) AS (
    SELECT q.queue, (SELECT min(r.priority) FROM ichido_ready r WHERE r.queue = q.queue) FROM q
    UNION ALL
    SELECT p.queue, (SELECT r.priority FROM ichido_ready r
                     WHERE r.queue = p.queue AND r.priority > p.priority ORDER BY r.priority LIMIT 1)
    FROM pair p WHERE p.priority IS NOT NULL
)
SELECT DISTINCT id FROM (
    SELECT r.message_id AS id
    FROM pair p CROSS JOIN ichido_ready r ON r.queue = p.queue AND r.priority = p.priority AND r.message_id < ?1
        AND r.message_id >= coalesce((
            SELECT n.message_id FROM ichido_ready n
            WHERE n.queue = p.queue AND n.priority = p.priority AND n.message_id < ?1
            ORDER BY n.message_id DESC LIMIT 1 OFFSET ?2 - 1), x'')
    UNION ALL
    SELECT s.message_id FROM (
        SELECT message_id FROM ichido_scheduled
        WHERE ?3 IN ('queued', 'failed') AND message_id < ?1 ORDER BY message_id DESC LIMIT ?2) AS s
    UNION ALL
    SELECT unhex(i.value) FROM ichido_leases, json_each(message_ids) AS i WHERE ?3 = 'sending' AND unhex(i.value) < ?1
    UNION ALL
    SELECT l.message_id FROM (
        SELECT message_id FROM ichido_dead_letters
        WHERE ?3 IN ('dead', 'parked') AND message_id < ?1 ORDER BY message_id DESC LIMIT ?2) AS l)
ORDER BY id DESC
LIMIT ?2
