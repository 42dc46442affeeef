-- Below the first position nothing can appear any more: every transaction there has ended. No transaction has started at or
-- after the second position.
SELECT base + pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS ended_below,
       base + pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS following,
       clock_timestamp() + $1 * interval '1 microsecond' AS now
FROM ichido.position_base
