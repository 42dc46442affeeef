SELECT token_id FROM ichido_dashboard_sessions WHERE hash = ?1 AND ?2 < expires_at
