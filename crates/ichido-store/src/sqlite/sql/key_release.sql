DELETE FROM ichido_ledger WHERE name = ?1 AND fence = ?2 AND state IN ('claimed', 'unknown')
