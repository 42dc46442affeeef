-- Finds settled records by their expiry after a moment: a bounded number, and those that expire together with the last.
SELECT name, expires_at FROM ichido.ledger
WHERE expires_at > $1 AND expires_at <= (
    SELECT max(p.expires_at)
    FROM (SELECT expires_at FROM ichido.ledger WHERE expires_at > $1 ORDER BY expires_at LIMIT $2) AS p)
