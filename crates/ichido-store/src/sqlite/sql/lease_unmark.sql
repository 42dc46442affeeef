DELETE FROM ichido_begun WHERE fence IN (SELECT value FROM json_each(?1))
