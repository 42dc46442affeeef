UPDATE ichido_leases SET lease_until = ?3 + ?2 WHERE fence IN (SELECT value FROM json_each(?1)) RETURNING fence
