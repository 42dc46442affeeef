DELETE FROM ichido.scheduled WHERE message_id = $1
RETURNING suspect, attempts, deaths, doubt_since, in_flight_until, last_fence, state, due
