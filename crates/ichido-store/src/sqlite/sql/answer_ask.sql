-- A call is about to be made. It is whoever's comes first, who has it already, or anyone's once its holder was not heard of for its
-- lease, or has it for longer than any (?6) can, because the clock was ahead: then that holder's call is lost.
INSERT INTO ichido_answers AS a (id, topic, created_at, holder, held_until, lost) VALUES (?1, ?2, ?5, ?3, ?5 + ?4, 0)
ON CONFLICT (id) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until,
        lost = a.lost + CASE WHEN a.holder IS NULL OR a.holder = excluded.holder THEN 0 ELSE 1 END
    WHERE a.answer IS NULL AND (a.holder IS NULL OR a.holder = excluded.holder OR a.held_until <= ?5 OR a.held_until > ?5 + ?6)
RETURNING lost
