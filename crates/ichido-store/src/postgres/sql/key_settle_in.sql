-- Stores one outcome in the caller's own transaction. Returns true if the claim is still valid.
SELECT ichido.key_settle($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) AS stands
