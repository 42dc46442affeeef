-- Like enqueue.sql, for a batch in which no message was enqueued before: without ON CONFLICT and RETURNING an insert costs
-- half. A batch with a duplicate fails as a whole and is enqueued with the other statement. `greatest` ignores NULL: a message is due
-- after its delay and its `run_at`, and `due` is NULL if that is now.
WITH now AS (SELECT clock_timestamp() + $13 * interval '1 microsecond' AS at),
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
),
ready AS (
    INSERT INTO ichido.ready (queue, priority, message_id)
    SELECT coalesce(i.queue, ($2::text[])[1]), coalesce(i.priority, ($9::smallint[])[1]), i.id
    FROM unnest($1::uuid[], $2::text[], $9::smallint[], $11::bigint[], $17::timestamptz[]) AS i (id, queue, priority, delay, run_at), now
    WHERE nullif(greatest(now.at, now.at + i.delay * interval '1 microsecond', i.run_at), now.at) IS NULL
),
scheduled AS (
    INSERT INTO ichido.scheduled (message_id, queue, priority, state, due, suspect, attempts, deaths)
    SELECT i.id, coalesce(i.queue, ($2::text[])[1]), coalesce(i.priority, ($9::smallint[])[1]), 'queued',
           nullif(greatest(now.at, now.at + i.delay * interval '1 microsecond', i.run_at), now.at), false, 0, 0
    FROM unnest($1::uuid[], $2::text[], $9::smallint[], $11::bigint[], $17::timestamptz[]) AS i (id, queue, priority, delay, run_at), now
    WHERE (cardinality($11) > 0 OR cardinality($17) > 0) -- Usually not: then no row is read.
      AND nullif(greatest(now.at, now.at + i.delay * interval '1 microsecond', i.run_at), now.at) IS NOT NULL
)
INSERT INTO ichido.count_deltas (queue, state, delta)
SELECT queue, 'queued', CASE WHEN cardinality($2) = 1 THEN cardinality($1) ELSE count(*) END
FROM unnest($2::text[]) AS i (queue) GROUP BY queue
