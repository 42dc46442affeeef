-- Keeps the sessions of a token that end last, $2 of them; $3 is more than there are.
DELETE FROM ichido.dashboard_sessions
WHERE hash IN (
    SELECT hash FROM ichido.dashboard_sessions WHERE token_id = $1 ORDER BY expires_at DESC LIMIT $3 OFFSET $2)
