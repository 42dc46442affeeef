INSERT INTO ichido_events (message_id, fence, step, at, from_state, to_state, kind, attempts, deaths, effect, excerpt, actor, about)
VALUES (?1, ?10, 0, ?2, ?3, ?4, ?5, 0, 0, ?6, ?7, ?8, ?9)
