DELETE FROM ichido.letters WHERE message_id = $1
RETURNING since, false AS suspect, tries, deaths, doubt_since, travels_until, last_fence, state, effect, closed, code, error
