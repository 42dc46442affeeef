DELETE FROM ichido.ready WHERE queue = $2 AND priority = $3 AND message_id = $1
RETURNING suspect, tries, deaths, doubt_since, travels_until, last_fence
