SELECT name, version, pace FROM ichido.destinations WHERE name > '' ORDER BY name LIMIT $1
