-- One outcome within the caller's own transaction; true when it stands.
SELECT ichido.key_settle($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) AS stands
