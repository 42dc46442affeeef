-- Like message_list.sql, for a state that is not final, read from the small tables of live messages: a rare state is not
-- searched for among millions of finished messages. CROSS JOIN fixes that order on SQLite, which would still read all of them
-- to sort them: so without further filters a page is selected first. A lease of messages being sent also names messages that
-- have ended.
SELECT m.id, m.queue, m.identity, m.idempotency_key, m.content_type, m.request, m.request_digest, m.status, m.attempts,
       m.max_attempts, m.next_attempt, m.last_error, m.last_error_text, m.effect, m.priority, m.hops, m.trace, m.trace_id, m.item, m.replacement_of,
       m.created_at, m.updated_at
FROM (
    SELECT DISTINCT message_id FROM (
        SELECT message_id FROM ichido_ready WHERE ?2 = 'queued' AND (?1 IS NULL OR queue = ?1)
        UNION ALL
        SELECT message_id FROM ichido_scheduled WHERE state = ?2 AND (?1 IS NULL OR queue = ?1)
        UNION ALL
        SELECT unhex(i.value) FROM ichido_leases, json_each(message_ids) AS i WHERE ?2 = 'sending' AND (?1 IS NULL OR queue = ?1)
        UNION ALL
        SELECT message_id FROM ichido_dead_letters WHERE state = ?2 AND (?1 IS NULL OR queue = ?1))
    WHERE message_id < ?8
    ORDER BY message_id DESC
    LIMIT CASE WHEN coalesce(?3, ?4, ?5, ?6, ?7) IS NULL AND ?2 <> 'sending' THEN ?9 ELSE -1 END) AS live
CROSS JOIN ichido_message AS m ON m.id = live.message_id
WHERE m.status = ?2
  AND (?3 IS NULL OR m.identity = ?3)
  AND (?4 IS NULL OR m.idempotency_key = ?4)
  AND (?5 IS NULL OR m.last_error = ?5)
  AND (?6 IS NULL OR m.created_at >= ?6)
  AND (?7 IS NULL OR m.created_at < ?7)
ORDER BY live.message_id DESC
LIMIT ?9
