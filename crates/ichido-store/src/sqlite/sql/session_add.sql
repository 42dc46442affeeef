INSERT INTO ichido_dashboard_sessions (hash, token_id, expires_at) VALUES (?1, ?2, ?3 + ?4)
