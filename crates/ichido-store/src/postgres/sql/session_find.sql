SELECT token_id FROM ichido.dashboard_sessions WHERE hash = $1 AND clock_timestamp() + $2 * interval '1 microsecond' < expires_at
