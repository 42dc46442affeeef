-- Returns the server's settings, as this connection sees them. reserved_connections exists from version 16 on.
SELECT
    current_setting('fsync') = 'on' AS fsync,
    current_setting('full_page_writes') = 'on' AS full_page_writes,
    current_setting('synchronous_commit') AS synchronous_commit,
    pg_is_in_recovery() AS follows,
    current_setting('max_connections')::int4 AS max_connections,
    current_setting('superuser_reserved_connections')::int4
        + coalesce(current_setting('reserved_connections', true)::int4, 0) AS connections_reserved,
    pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS sees_everybody,
    to_regclass('ichido.migrations') IS NOT NULL AND to_regclass('ichido.nodes') IS NOT NULL AS has_schema
