-- Finds entries that no seal lists and that were not noted for the next one.
SELECT e.message_id, e.fence, e.step, e.at
FROM ichido_events e
WHERE (e.message_id, e.fence, e.step) > (?1, ?2, ?3)
  AND NOT EXISTS (SELECT 1 FROM temp.ichido_listed l WHERE l.message_id = e.message_id AND l.fence = e.fence AND l.step = e.step)
  AND NOT EXISTS (SELECT 1 FROM ichido_unsealed u WHERE u.message_id = e.message_id AND u.fence = e.fence AND u.step = e.step)
ORDER BY e.message_id, e.fence, e.step LIMIT ?4
