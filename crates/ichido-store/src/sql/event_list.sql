-- Columns are named: with `*`, a prepared statement would fail once a newer program has added one.
SELECT message_id, fence, step, claimed_at, at, from_state, to_state, kind, attempts, effect, code, status, result_digest, receipt,
       excerpt, response, response_type, response_bytes, node, actor
FROM ichido.events WHERE message_id = $1 ORDER BY fence, step
