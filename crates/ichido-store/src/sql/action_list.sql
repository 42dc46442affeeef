SELECT message_id, fence, at, from_state, to_state, kind, excerpt, actor, about
FROM ichido.events WHERE about IS NOT NULL AND fence < $1 ORDER BY fence DESC LIMIT $2
