-- Dead or parked, newest first (SPEC E3), by their own index.
SELECT v.*, l.since FROM ichido_letters l JOIN ichido_message v ON v.id = l.message_id
WHERE l.state = ?1 AND (?2 IS NULL OR l.queue = ?2)
  AND (?3 IS NULL OR (l.since, l.message_id) < (?3, ?4))
ORDER BY l.since DESC, l.message_id DESC
LIMIT ?5
