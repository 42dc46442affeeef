DELETE FROM ichido_ready
WHERE queue = ?1 AND (priority, message_id) IN (SELECT value ->> 0, unhex(value ->> 1) FROM json_each(?2))
