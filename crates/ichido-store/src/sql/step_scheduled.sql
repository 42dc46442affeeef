DELETE FROM ichido.scheduled WHERE message_id = $1
RETURNING suspect, tries, deaths, doubt_since, travels_until, last_fence, state, due
