-- Only if it has been clear since then: another node may have seen it return.
UPDATE ichido.alerts SET resolved_at = $3 WHERE id = $1 AND clear_since = $2 AND resolved_at IS NULL
