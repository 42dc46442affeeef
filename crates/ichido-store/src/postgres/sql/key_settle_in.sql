-- Stores one outcome in the caller's own transaction. Returns true if the claim is still valid. Stores nothing and returns no row if
-- $11 and this is not the transaction that was begun: a handler may have ended that.
SELECT ichido.key_settle($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) AS stands
WHERE NOT $11::boolean OR current_setting('ichido.transaction', true) = 'open'
