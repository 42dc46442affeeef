-- Like settle_sent.sql, for a single report: without arrays it costs little more than half. $13 is the fence if its claim is
-- over, otherwise NULL.
WITH held AS (SELECT fence, node, queue, claimed_at FROM ichido.leases WHERE fence = $2 FOR UPDATE),
ended AS (
    INSERT INTO ichido.events
        (message_id, fence, step, claimed_at, at, from_state, to_state, kind, attempts, deaths, effect,
         status, result_digest, receipt, code, excerpt, response, response_type, response_bytes, node)
    SELECT $1::uuid, fence, 0, claimed_at, clock_timestamp() + $5 * interval '1 microsecond', 'sending', 'sent', 'succeeded',
           $3::integer, $4::integer, 'done', $6::smallint, $7::bytea, $8::text, $9::text, $10::text, $11::bytea, $12::text, $14::integer, node
    FROM held
),
over AS (DELETE FROM ichido.leases WHERE fence = $13 AND fence IN (SELECT fence FROM held)),
unmarked AS (DELETE FROM ichido.start_marks WHERE fence = $13),
counted AS (
    INSERT INTO ichido.count_deltas (queue, state, delta)
    SELECT held.queue, c.state, c.sign FROM held, (VALUES ('sending', -1), ('sent', 1)) AS c (state, sign)
)
SELECT fence FROM held
