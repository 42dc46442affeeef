DELETE FROM ichido_start_marks WHERE fence IN (SELECT value FROM json_each(?1))
