-- A claim that has expired is not renewed: it may be rescued at any moment. A claim of this process is judged by its own clock (?4),
-- another one by the wall clock.
UPDATE ichido_leases SET lease_until = ?3 + ?2
WHERE fence IN (SELECT value FROM json_each(?1)) AND (lease_until > ?3 OR fence IN (SELECT value FROM json_each(?4)))
RETURNING fence
