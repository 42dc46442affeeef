INSERT INTO ichido_events (message_id, fence, step, at, from_state, to_state, kind, tries, deaths, effect, excerpt, actor, about)
VALUES (?1, ?2, 0, ?3, ?4, ?5, ?6, 0, 0, ?7, ?8, ?9, ?10)
