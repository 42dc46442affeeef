DELETE FROM ichido.dead_letters WHERE message_id = $1
RETURNING since, false AS suspect, attempts, deaths, doubt_since, in_flight_until, last_fence, state, effect, closed, code, error, group_id
