-- Counts the messages of each queue that died within a span and are still dead, whether or not a person has closed them. Each
-- kind is counted up to the limit. SQLite has no LATERAL, so the kinds are written out.
SELECT q.value AS queue,
    (SELECT count(*) FROM (
        SELECT 1 FROM ichido_dead_letters l
        WHERE l.state = 'dead' AND l.closed = 'open' AND l.queue = q.value AND l.since >= ?2 AND l.since < ?3 LIMIT ?4))
    + (SELECT count(*) FROM (
        SELECT 1 FROM ichido_dead_letters l
        WHERE l.state = 'dead' AND l.closed = 'discarded' AND l.queue = q.value AND l.since >= ?2 AND l.since < ?3 LIMIT ?4))
    + (SELECT count(*) FROM (
        SELECT 1 FROM ichido_dead_letters l
        WHERE l.state = 'dead' AND l.closed = 'replaced' AND l.queue = q.value AND l.since >= ?2 AND l.since < ?3 LIMIT ?4)) AS count
FROM json_each(?1) AS q
