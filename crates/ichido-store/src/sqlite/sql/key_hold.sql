UPDATE ichido_ledger SET state = 'unknown', lease_until = NULL WHERE name = ?1 AND fence = ?2 AND state IN ('claimed', 'unknown')
