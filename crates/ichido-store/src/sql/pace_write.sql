-- Compare and swap: replaces only the version that was read; a first write names version 0.
INSERT INTO ichido.destinations AS d (name, version, pace)
SELECT $1, 1, $3 WHERE $2 = 0 OR EXISTS (SELECT 1 FROM ichido.destinations WHERE name = $1)
ON CONFLICT (name) DO UPDATE SET version = d.version + 1, pace = excluded.pace WHERE d.version = $2
RETURNING version
