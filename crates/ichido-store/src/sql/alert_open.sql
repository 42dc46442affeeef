INSERT INTO ichido.alerts (id, rule, about, opened_at, value, samples, above, window_for)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (rule, about) WHERE resolved_at IS NULL DO NOTHING
