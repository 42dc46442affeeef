-- Counts letters that match a filter, up to a limit, by what decides about them. The letters are found like a page of them, by the
-- index of the group, the queue, the code or of all: SQLite checks a condition on values alone once, before it looks for rows.
WITH found (id) AS (
    SELECT rowid FROM ichido_dead_letters
    WHERE ?10 IS NOT NULL AND group_id = ?10 AND state = ?1 AND closed = ?2 AND since >= ?5 AND since < ?4
      AND (?3 IS NULL OR queue = ?3) AND (?6 IS NULL OR code = ?6)
    UNION ALL
    SELECT rowid FROM ichido_dead_letters
    WHERE ?10 IS NULL AND ?6 IS NOT NULL AND code = ?6 AND state = ?1 AND closed = ?2 AND since >= ?5 AND since < ?4
      AND (?3 IS NULL OR queue = ?3)
    UNION ALL
    SELECT rowid FROM ichido_dead_letters
    WHERE ?10 IS NULL AND ?6 IS NULL AND ?3 IS NOT NULL AND queue = ?3 AND state = ?1 AND closed = ?2 AND since >= ?5 AND since < ?4
    UNION ALL
    SELECT rowid FROM ichido_dead_letters
    WHERE ?10 IS NULL AND ?6 IS NULL AND ?3 IS NULL AND state = ?1 AND closed = ?2 AND since >= ?5 AND since < ?4
),
counted (queue, code, effect, doubt_since, in_flight_until) AS (
    SELECT l.queue, l.code, l.effect, l.doubt_since, l.in_flight_until
    FROM found f CROSS JOIN ichido_dead_letters l ON l.rowid = f.id
    WHERE (?7 IS NULL OR l.effect = ?7) AND (?9 IS NULL OR instr(l.error, ?9) > 0)
      AND (?8 IS NULL OR EXISTS (SELECT 1 FROM ichido_messages m WHERE m.id = l.message_id AND m.identity = ?8))
    LIMIT ?15
)
SELECT l.queue, l.code, l.effect, count(*) AS count, max(l.doubt_since) AS doubt_since, max(l.in_flight_until) AS in_flight_until
FROM counted l
GROUP BY l.queue, l.code, l.effect, l.doubt_since IS NULL, l.doubt_since > ?12, l.in_flight_until > ?11,
         CASE WHEN l.doubt_since IS NOT NULL THEN
             l.doubt_since <= (SELECT k.value ->> 1 FROM json_each(?14) k WHERE k.value ->> 0 = l.queue)
         END
LIMIT ?13
