-- Finds entries that were noted for the next seal and are missing.
SELECT u.message_id, u.fence, u.step
FROM ichido_unsealed u
WHERE (u.message_id, u.fence, u.step) > (?1, ?2, ?3)
  AND NOT EXISTS (SELECT 1 FROM ichido_events e WHERE e.message_id = u.message_id AND e.fence = u.fence AND e.step = u.step)
ORDER BY u.message_id, u.fence, u.step LIMIT ?4
