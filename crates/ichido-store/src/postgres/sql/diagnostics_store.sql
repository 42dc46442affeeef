-- Returns the store's version, and how many nodes are not gone and were seen within the last $1 microseconds.
SELECT
    (SELECT max(version) FROM ichido.migrations WHERE success) AS schema,
    (SELECT count(*)::int4 FROM ichido.nodes
     WHERE NOT gone AND clock_timestamp() - $1 * interval '1 microsecond' <= seen_at AND seen_at <= clock_timestamp()) AS nodes
