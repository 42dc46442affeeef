DELETE FROM ichido.dashboard_sessions WHERE hash = $1
