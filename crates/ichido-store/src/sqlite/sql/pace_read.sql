SELECT version, pace FROM ichido_destinations WHERE name = ?1
