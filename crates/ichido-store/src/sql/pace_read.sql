SELECT version, pace FROM ichido.destinations WHERE name = $1
