DELETE FROM ichido.ready WHERE queue = $2 AND priority = $3 AND message_id = $1
RETURNING suspect, attempts, deaths, doubt_since, in_flight_until, last_fence
