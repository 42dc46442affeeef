-- Fails with "no active transaction" without one, and as every statement does in one that has failed. The lock is that of a read.
LOCK TABLE pg_catalog.pg_namespace IN ACCESS SHARE MODE
