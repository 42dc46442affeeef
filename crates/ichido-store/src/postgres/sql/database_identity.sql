-- Identifies the database of a connection: its number within its server, and when that server started.
SELECT oid::bigint AS database, pg_postmaster_start_time() AS started FROM pg_database WHERE datname = current_database()
