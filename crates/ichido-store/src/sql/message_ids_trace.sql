-- Like message_ids.sql, for one trace id.
SELECT id FROM ichido.messages WHERE trace_id = $3 AND id < $1 ORDER BY id DESC LIMIT $2
