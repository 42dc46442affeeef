SELECT id, rule, about, opened_at, value, samples, above, window_for, clear_since, resolved_at
FROM ichido.alerts WHERE (opened_at, id) < ($1, $2) ORDER BY opened_at DESC, id DESC LIMIT $3
