WITH taken AS (
    DELETE FROM ichido.count_deltas WHERE ctid = ANY (ARRAY (SELECT ctid FROM ichido.count_deltas LIMIT $1 FOR UPDATE SKIP LOCKED))
    RETURNING queue, state, delta
),
sums AS (SELECT queue, state, sum(delta) AS delta, count(*) AS rows FROM taken GROUP BY queue, state),
folded AS (
    INSERT INTO ichido.counts AS c (queue, state, count) SELECT queue, state, delta FROM sums ORDER BY queue, state
    ON CONFLICT (queue, state) DO UPDATE SET count = c.count + excluded.count
)
SELECT coalesce(sum(rows), 0)::bigint AS folded FROM sums
