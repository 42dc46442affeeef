-- Like settle_sent.sql, for one report, as the last statement of the holder's own transaction before its COMMIT. Returns no
-- row, and writes nothing, if the claim was lost, has expired, or does not hold the message, if the message has ended under it, or if
-- $15 and this is not the transaction that was begun: a handler may have ended that.
--
-- The lock keeps renewals and rescues waiting until the transaction ends, which is at once. A rescue that was first has deleted
-- the lease; one that comes later sees the event. The lease is deleted after the commit (lease_finished.sql), not here: that lock
-- would make the worker's other claims wait. $13 is not used.
--
-- A response must also mean durable, however the caller's connection is configured; a stricter setting is kept.
WITH now AS (SELECT clock_timestamp() + $5 * interval '1 microsecond' AS at),
held AS (
    SELECT fence, node, queue, claimed_at FROM ichido.leases
    WHERE fence = $2 AND message_ids @> ARRAY[$1::uuid] AND lease_until > (SELECT at FROM now)
      AND (NOT $15::boolean OR current_setting('ichido.transaction', true) = 'open')
    FOR SHARE
),
ended AS (
    INSERT INTO ichido.events
        (message_id, fence, step, claimed_at, at, from_state, to_state, kind, attempts, deaths, effect,
         status, result_digest, receipt, code, excerpt, response, response_type, response_bytes, node)
    SELECT $1::uuid, held.fence, 0, held.claimed_at, now.at, 'sending', 'sent', 'succeeded',
           $3::integer, $4::integer, 'done', $6::smallint, $7::bytea, $8::text, $9::text, $10::text, $11::bytea, $12::text, $14::integer, held.node
    FROM held, now
    ON CONFLICT DO NOTHING
    RETURNING message_id, fence
),
counted AS (
    INSERT INTO ichido.count_deltas (queue, state, delta)
    SELECT held.queue, c.state, c.sign
    FROM ended JOIN held USING (fence), (VALUES ('sending', -1), ('sent', 1)) AS c (state, sign)
)
SELECT message_id, fence,
       CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN set_config('synchronous_commit', 'on', true) END
FROM ended
