-- Finds the last event before a position that ended a call, or said what came of one; at most $4 events are looked at.
SELECT e.message_id, e.fence, e.step, e.claimed_at, e.at, e.from_state, e.to_state, e.kind, e.attempts, e.effect, e.code, e.status,
       e.result_digest, e.receipt, e.excerpt, e.response, e.response_type, e.response_bytes, e.node, e.actor
FROM ichido.events e
WHERE e.message_id = $1 AND (e.fence, e.step) = (
    SELECT f.fence, f.step
    FROM (SELECT fence, step, kind FROM ichido.events WHERE message_id = $1 AND (fence, step) < ($2, $3)
          ORDER BY fence DESC, step DESC LIMIT $4) AS f
    WHERE f.kind IN ('succeeded', 'failed', 'stopped', 'worker_died', 'late_success', 'reconciled', 'decided')
    ORDER BY f.fence DESC, f.step DESC LIMIT 1)
