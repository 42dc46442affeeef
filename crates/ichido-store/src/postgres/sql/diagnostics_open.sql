-- Lists client transactions that have been open for longer than $1 microseconds, without their statements, which may contain
-- payloads. Transactions of other users are visible to roles that may read all statistics. Vacuum does not belong to a client
-- and blocks nobody.
SELECT pid AS process, coalesce(usename::text, '') AS user_name, coalesce(application_name, '') AS application, xact_start AS since
FROM pg_stat_activity
WHERE datname = current_database()
    AND backend_type = 'client backend'
    AND pid <> pg_backend_pid()
    AND xact_start < clock_timestamp() - $1 * interval '1 microsecond'
ORDER BY xact_start
LIMIT $2
