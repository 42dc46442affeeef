-- Like settle_sent.sql, for reports of which none was made before: without ON CONFLICT and RETURNING an insert costs less.
-- Returns the valid claims, whose reports are all stored. A batch with a repeated report fails as a whole and is written with
-- the other statement.
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
),
over AS (DELETE FROM ichido.leases WHERE fence = ANY ($10) AND fence IN (SELECT fence FROM held)),
unmarked AS (DELETE FROM ichido.start_marks WHERE fence = ANY ($10)),
counted AS (
    INSERT INTO ichido.count_deltas (queue, state, delta)
    SELECT held.queue, c.state, sum(c.sign)
    FROM unnest($2::bigint[]) AS i (fence) JOIN held USING (fence), (VALUES ('sending', -1), ('sent', 1)) AS c (state, sign)
    GROUP BY held.queue, c.state
)
SELECT fence FROM held
