DELETE FROM ichido_leases WHERE fence IN (SELECT value FROM json_each(?1))
