-- Marks claims of these operations whose owner is gone, their leases ending from ?1 to ?5, a bounded number at a time, less those of this process, whose leases go by
-- its own clock. The fence stays, so that a late settle is still heard.
UPDATE ichido_ledger SET state = 'unknown', lease_until = NULL
WHERE name IN (
    SELECT name FROM ichido_ledger
    WHERE lease_until BETWEEN ?1 AND ?5
      AND operation IN (SELECT value FROM json_each(?2))
      AND fence NOT IN (SELECT value FROM json_each(?3))
    ORDER BY lease_until
    LIMIT ?4
)
