INSERT INTO ichido.dashboard_sessions (hash, token_id, expires_at)
VALUES ($1, $2, clock_timestamp() + ($3 + $4) * interval '1 microsecond')
