-- A call is about to be made. It is whoever's comes first, who has it already, or anyone's once its holder was not heard of for its
-- lease, or has it for longer than any ($6) can, because the clock was ahead: then that holder's call is lost.
INSERT INTO ichido.answers AS a (id, topic, created_at, holder, held_until, lost)
SELECT $1, $2, now.at, $3, now.at + $4 * interval '1 microsecond', 0
FROM (SELECT clock_timestamp() + $5 * interval '1 microsecond' AS at) AS now
ON CONFLICT (id) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until,
        lost = a.lost + CASE WHEN a.holder IS NULL OR a.holder = excluded.holder THEN 0 ELSE 1 END
    WHERE a.answer IS NULL
      AND (a.holder IS NULL OR a.holder = excluded.holder OR a.held_until <= clock_timestamp() + $5 * interval '1 microsecond'
           OR a.held_until > clock_timestamp() + $5 * interval '1 microsecond' + $6 * interval '1 microsecond')
RETURNING lost
