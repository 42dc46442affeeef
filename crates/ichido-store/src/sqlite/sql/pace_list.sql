SELECT name, version, pace FROM ichido_destinations WHERE name > '' ORDER BY name LIMIT ?1
