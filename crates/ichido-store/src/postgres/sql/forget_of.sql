-- Deletes ended messages of one identity in one queue, a bounded number at a time, including dead letters that a person has
-- closed. Those are locked first, because somebody may be requeueing one. Returns the same as retention.sql.
WITH closed AS (
    SELECT l.message_id AS id
    FROM ichido.messages m JOIN ichido.dead_letters l ON l.message_id = m.id
    WHERE m.queue = $1 AND m.identity = $2 AND l.closed <> 'open'
    LIMIT $3
    FOR UPDATE OF l
),
finished AS (
    SELECT m.id, e.to_state AS state
    FROM ichido.messages m,
         LATERAL (SELECT to_state FROM ichido.events WHERE message_id = m.id ORDER BY fence DESC, step DESC LIMIT 1) e
    WHERE m.queue = $1 AND m.identity = $2 AND e.to_state IN ('sent', 'cancelled')
    LIMIT $3 - (SELECT count(*) FROM closed)
),
old AS (SELECT id, 'closed' AS state FROM closed UNION ALL SELECT id, state FROM finished),
letters AS (DELETE FROM ichido.dead_letters USING closed WHERE message_id = closed.id),
events AS (DELETE FROM ichido.events USING old WHERE message_id = old.id RETURNING message_id, position),
sealed AS (
    SELECT message_id, count(*)::integer AS entries FROM events
    WHERE position < (SELECT until_position FROM ichido.seals ORDER BY number DESC LIMIT 1)
    GROUP BY message_id
),
gone AS (DELETE FROM ichido.messages USING old WHERE messages.id = old.id RETURNING messages.queue, old.state),
counted AS (
    INSERT INTO ichido.count_deltas (queue, state, delta)
    SELECT queue, state, -count(*) FROM gone GROUP BY queue, state
)
SELECT (SELECT count(*) FROM gone) AS gone, clock_timestamp() + $4 * interval '1 microsecond' AS now,
       ARRAY (SELECT message_id FROM sealed ORDER BY message_id) AS message_ids,
       ARRAY (SELECT entries FROM sealed ORDER BY message_id) AS entries
