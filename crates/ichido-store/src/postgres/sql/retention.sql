-- Deletes finished messages that are old enough, a bounded number at a time. Dead and parked ones are kept. A key of the ledger
-- outlives its message, never the other way round: the sweep checks the message first. Returns how many were deleted, and how
-- many entries of each message were sealed, which explains why they are missing.
WITH old AS (
    SELECT m.id, e.to_state AS state
    FROM ichido.messages m,
         LATERAL (SELECT to_state, at FROM ichido.events WHERE message_id = m.id ORDER BY fence DESC, step DESC LIMIT 1) e
    WHERE m.id < $1 AND e.to_state IN ('sent', 'cancelled') AND e.at < $2
    ORDER BY m.id LIMIT $3
),
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
