-- Dead or parked messages of one queue, newest first (SPEC E3), by their own index.
SELECT v.*, l.since FROM ichido_letters l CROSS JOIN ichido_message v ON v.id = l.message_id
WHERE l.state = ?1 AND (l.since, l.message_id) < (?2, ?3) AND l.queue = ?5
ORDER BY l.since DESC, l.message_id DESC
LIMIT ?4
