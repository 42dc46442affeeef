UPDATE ichido.alerts SET clear_since = $2 WHERE id = $1 AND resolved_at IS NULL
