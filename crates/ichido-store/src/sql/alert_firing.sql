SELECT id, rule, about, opened_at, value, samples, above, window_for, clear_since, resolved_at
FROM ichido.alerts WHERE resolved_at IS NULL AND rule > '' ORDER BY rule, about LIMIT $1
