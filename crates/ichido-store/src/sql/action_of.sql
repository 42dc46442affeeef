SELECT message_id, fence, at, from_state, to_state, kind, excerpt, actor, about
FROM ichido.events WHERE message_id = $1 AND about IS NOT NULL ORDER BY fence
