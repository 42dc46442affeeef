-- Deletes lists whose records have all expired, a bounded number at a time.
DELETE FROM ichido.sealed_keys WHERE until_at <= (
    SELECT max(p.until_at)
    FROM (SELECT until_at FROM ichido.sealed_keys WHERE until_at <= $1 ORDER BY until_at LIMIT $2) AS p)
