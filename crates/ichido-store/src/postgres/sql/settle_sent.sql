-- The common end: sent. Writes one event row per message; the lease row is deleted with the last message of its batch. A
-- message that has already ended under its claim is not changed.
--
-- The lock prevents a rescue from reading the remaining messages before this commits; if the rescue came first, the lease is
-- missing here. It is the lock that the deletion needs, taken in one order: two nodes that report on the same claims cannot
-- deadlock.
WITH now AS (SELECT clock_timestamp() + $11 * interval '1 microsecond' AS at),
held AS (SELECT fence, node, queue FROM ichido.leases WHERE fence = ANY ($9) ORDER BY fence FOR UPDATE),
ended AS (
    INSERT INTO ichido.events
        (message_id, fence, step, claimed_at, at, from_state, to_state, kind, attempts, deaths, effect,
         status, result_digest, receipt, code, excerpt, response, response_type, response_bytes, node)
    SELECT i.message_id, i.fence, 0, i.claimed_at, now.at, 'sending', 'sent', 'succeeded', i.attempts, i.deaths, 'done',
           i.status, i.result_digest, i.receipt, i.code, i.excerpt, i.response, i.response_type, i.response_bytes, held.node
    FROM unnest($1::uuid[], $2::bigint[], $3::timestamptz[], $4::integer[], $5::integer[], $6::smallint[], $7::bytea[], $8::text[],
                $12::text[], $13::text[], $14::bytea[], $15::text[], $16::integer[])
             AS i (message_id, fence, claimed_at, attempts, deaths, status, result_digest, receipt, code, excerpt,
                   response, response_type, response_bytes)
    JOIN held USING (fence), now
    ON CONFLICT DO NOTHING
    RETURNING message_id, fence
),
over AS (DELETE FROM ichido.leases WHERE fence = ANY ($10) AND fence IN (SELECT fence FROM held)),
unmarked AS (DELETE FROM ichido.start_marks WHERE fence = ANY ($10)),
counted AS (
    INSERT INTO ichido.count_deltas (queue, state, delta)
    SELECT held.queue, c.state, sum(c.sign)
    FROM ended JOIN held USING (fence), (VALUES ('sending', -1), ('sent', 1)) AS c (state, sign)
    GROUP BY held.queue, c.state
)
SELECT message_id, fence FROM ended
