-- The common end: sent. Writes one event row per message; the lease row is deleted with the last message of its batch. Returns
-- the valid claims, whose reports are all stored. None of them was made before: without ON CONFLICT and RETURNING an insert
-- costs less. A batch with a repeated report fails as a whole, and is written like failures, which look first.
--
-- The lock prevents a rescue from reading the remaining messages before this commits; if the rescue came first, the lease is
-- missing here. It is the lock that the deletion needs, taken in one order: two nodes that report on the same claims cannot
-- deadlock.
--
-- Each message has the position of its fence in $5, and $15 counts those of each fence. Not a join: PostgreSQL would build its hash
-- table from the messages, which costs more and returns them in reverse, and then the index of the events is filled backwards and
-- half empty. A column that repeats one value has only that one, and one without values has none ($2 to $4, $8 to $14, $16; see
-- repeated.rs).
WITH now AS (SELECT clock_timestamp() + $7 * interval '1 microsecond' AS at),
held AS (SELECT fence, node, queue, claimed_at FROM ichido.leases WHERE fence = ANY ($5) ORDER BY fence FOR UPDATE),
lease AS (
    SELECT array_agg(held.node ORDER BY f.number) AS nodes, array_agg(held.claimed_at ORDER BY f.number) AS claimed_at
    FROM unnest($5::bigint[]) WITH ORDINALITY AS f (fence, number) LEFT JOIN held USING (fence)
),
ended AS (
    INSERT INTO ichido.events
        (message_id, fence, step, claimed_at, at, from_state, to_state, kind, attempts, deaths, effect,
         status, result_digest, receipt, code, excerpt, response, response_type, response_bytes, node)
    SELECT i.message_id, ($5::bigint[])[coalesce(i.lease, ($2::integer[])[1])], 0, lease.claimed_at[coalesce(i.lease, ($2::integer[])[1])],
           now.at, 'sending', 'sent', 'succeeded', coalesce(i.attempts, ($3::integer[])[1]), coalesce(i.deaths, ($4::integer[])[1]), 'done',
           i.status, i.result_digest, i.receipt, i.code, i.excerpt, i.response, i.response_type, i.response_bytes,
           lease.nodes[coalesce(i.lease, ($2::integer[])[1])]
    FROM unnest($1::uuid[], $2::integer[], $3::integer[], $4::integer[], $8::smallint[], $9::bytea[], $10::text[], $11::text[],
                $12::text[], $13::bytea[], $14::text[], $16::integer[])
             AS i (message_id, lease, attempts, deaths, status, result_digest, receipt, code, excerpt,
                   response, response_type, response_bytes),
         lease, now
    WHERE lease.nodes[coalesce(i.lease, ($2::integer[])[1])] IS NOT NULL
),
over AS (DELETE FROM ichido.leases WHERE fence = ANY ($6) AND fence IN (SELECT fence FROM held)),
unmarked AS (DELETE FROM ichido.start_marks WHERE fence = ANY ($6)),
counted AS (
    INSERT INTO ichido.count_deltas (queue, state, delta)
    SELECT held.queue, c.state, sum(c.sign * f.count)
    FROM unnest($5::bigint[], $15::integer[]) AS f (fence, count) JOIN held USING (fence), (VALUES ('sending', -1), ('sent', 1)) AS c (state, sign)
    GROUP BY held.queue, c.state
)
SELECT fence FROM held
