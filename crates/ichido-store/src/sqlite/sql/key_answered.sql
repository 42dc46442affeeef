-- Notes when the call of an unknown outcome was answered: from then on it is not in transit.
UPDATE ichido_ledger SET completed_at = ?3 WHERE name = ?1 AND fence = ?2 AND state = 'unknown'
