-- Transactions of clients that have been open for longer than $1 microseconds; not what they asked, which may hold payloads. Those of
-- other users are seen by who may read all statistics. Vacuuming is no client's, and holds nobody up.
SELECT pid AS process, coalesce(usename::text, '') AS user_name, coalesce(application_name, '') AS application, xact_start AS since
FROM pg_stat_activity
WHERE datname = current_database()
    AND backend_type = 'client backend'
    AND pid <> pg_backend_pid()
    AND xact_start < clock_timestamp() - $1 * interval '1 microsecond'
ORDER BY xact_start
LIMIT $2
