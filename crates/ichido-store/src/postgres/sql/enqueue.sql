-- Inserts messages and makes them claimable in one statement. Rows are sorted by queue, identity and key. A column that repeats
-- one value has only that one ($2, $3, $6, $9, $10), and one without values has none ($8, $11, $12, $14 to $17; see repeated.rs).
--
-- If $18 and this is not the transaction that was begun, nothing is inserted, and the only row is NULL.
WITH now AS (
    SELECT clock_timestamp() + $13 * interval '1 microsecond' AS at
    WHERE NOT $18::boolean OR current_setting('ichido.transaction', true) = 'open'
),
added AS (
    INSERT INTO ichido.messages
        (id, queue, identity, key, digest, content_type, request, trace, priority, max_attempts, due, replacement_of, created_at, hops,
         trace_id, item)
    SELECT i.id, coalesce(i.queue, ($2::text[])[1]), coalesce(i.identity, ($3::text[])[1]), i.key, i.digest,
           coalesce(i.content_type, ($6::text[])[1]), i.request, i.trace,
           coalesce(i.priority, ($9::smallint[])[1]), coalesce(i.max_attempts, ($10::integer[])[1]),
           nullif(greatest(now.at, now.at + i.delay * interval '1 microsecond', i.run_at), now.at), i.replacement_of, now.at, i.hops, i.trace_id, i.item
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::text[], $7::bytea[], $8::text[],
                $9::smallint[], $10::integer[], $11::bigint[], $12::uuid[], $14::text[], $15::text[], $16::text[], $17::timestamptz[])
             AS i (id, queue, identity, key, digest, content_type, request, trace, priority, max_attempts, delay, replacement_of, hops,
                   trace_id, item, run_at),
         now
    ON CONFLICT (queue, identity, key) DO NOTHING
    RETURNING id, queue, priority, due
),
ready AS (
    INSERT INTO ichido.ready (queue, priority, message_id)
    SELECT queue, priority, id FROM added WHERE due IS NULL
),
scheduled AS (
    INSERT INTO ichido.scheduled (message_id, queue, priority, state, due, suspect, attempts, deaths)
    SELECT id, queue, priority, 'queued', due, false, 0, 0 FROM added WHERE due IS NOT NULL
),
counted AS (
    INSERT INTO ichido.count_deltas (queue, state, delta)
    SELECT queue, 'queued', count(*) FROM added GROUP BY queue
)
SELECT id FROM added
UNION ALL
SELECT NULL WHERE NOT EXISTS (SELECT FROM now)
