-- Claims the right to make a call. The first caller gets it, the current holder keeps it, and anyone gets it once the holder's
-- lease has lapsed or ends later than any lease (?6) can, because the clock was ahead. In the last two cases the holder's call
-- counts as lost.
INSERT INTO ichido_answers AS a (id, topic, created_at, holder, held_until, lost) VALUES (?1, ?2, ?5, ?3, ?5 + ?4, 0)
ON CONFLICT (id) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until,
        lost = a.lost + CASE WHEN a.holder IS NULL OR a.holder = excluded.holder THEN 0 ELSE 1 END
    WHERE a.answer IS NULL AND (a.holder IS NULL OR a.holder = excluded.holder OR a.held_until <= ?5 OR a.held_until > ?5 + ?6)
RETURNING lost
