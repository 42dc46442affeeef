-- Like enqueue_new.sql, for a single message that is due at once. For one row, `unnest`, the row's conditions and the table of
-- delayed messages cost more than the inserts.
WITH added AS (
    INSERT INTO ichido.messages
        (id, queue, identity, key, digest, content_type, request, trace, priority, max_attempts, replacement_of, created_at, hops,
         trace_id, item)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, clock_timestamp() + $12 * interval '1 microsecond', $13, $14, $15)
),
ready AS (INSERT INTO ichido.ready (queue, priority, message_id) VALUES ($2, $9, $1))
INSERT INTO ichido.count_deltas (queue, state, delta) VALUES ($2, 'queued', 1)
