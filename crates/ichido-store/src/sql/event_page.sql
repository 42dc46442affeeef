-- Like event_list.sql, for the newest events before one, newest first. A message may have tens of thousands.
SELECT message_id, fence, step, claimed_at, at, from_state, to_state, kind, attempts, effect, code, status, result_digest, receipt,
       excerpt, response, response_type, response_bytes, node, actor
FROM ichido.events WHERE message_id = $1 AND (fence, step) < ($2, $3) ORDER BY fence DESC, step DESC LIMIT $4
