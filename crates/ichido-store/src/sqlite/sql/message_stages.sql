SELECT v.id, v.status, v.attempts
FROM json_each(?1) AS i CROSS JOIN ichido_message v ON v.id = unhex(i.value)
