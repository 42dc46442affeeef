-- Lets the leases of a dead node lapse. Leases are few, and nodes die rarely.
UPDATE ichido_leases SET lease_until = ?2 WHERE node = ?1 AND lease_until > ?2 RETURNING fence, true AS lapsed
