-- The owner is gone: its lease lapsed. The fence stays, so a late settle is still accepted.
UPDATE ichido_ledger SET state = 'unknown', lease_until = NULL WHERE name = ?1 AND fence = ?2 AND state = 'claimed'
