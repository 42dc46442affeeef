-- Marks claims of these operations whose owner is gone and whose leases end between ?1 and ?5, a bounded number at a time,
-- except those of this process, whose leases follow its own clock. The fence stays, so a late settle is still accepted.
UPDATE ichido_ledger SET state = 'unknown', lease_until = NULL
WHERE name IN (
    SELECT name FROM ichido_ledger
    WHERE lease_until BETWEEN ?1 AND ?5
      AND operation IN (SELECT value FROM json_each(?2))
      AND fence NOT IN (SELECT value FROM json_each(?3))
    ORDER BY lease_until
    LIMIT ?4
)
RETURNING operation, identity, key
