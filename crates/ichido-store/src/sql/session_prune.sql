-- Keeps the sessions that end last, $1 of them.
DELETE FROM ichido.dashboard_sessions
WHERE hash IN (SELECT hash FROM ichido.dashboard_sessions ORDER BY expires_at DESC LIMIT $2 OFFSET $1)
