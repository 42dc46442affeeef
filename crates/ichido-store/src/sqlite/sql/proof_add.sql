-- Stores a success whose claim was lost while another claim holds the message. It is stored under its own claim, next to its
-- outcome, and read when the current attempt ends. The counts are those of that outcome, because the last event before an
-- attempt says what was attempted.
INSERT INTO ichido_events
    (message_id, fence, step, at, from_state, to_state, kind, attempts, deaths, doubt_since, in_flight_until, effect,
     code, status, result_digest, receipt, excerpt, node, actor, response, response_type, response_bytes)
SELECT e.message_id, e.fence, 2, ?3, 'sending', 'sending', 'late_success',
       e.attempts, e.deaths, e.doubt_since, e.in_flight_until, 'done', ?4, ?5, ?6, ?7, ?8, e.node, ?9, ?11, ?12, ?13
FROM ichido_events e
WHERE e.message_id = ?1 AND e.fence = ?2 AND e.step = 0 AND e.claimed_at IS NOT NULL
ON CONFLICT (message_id, fence, step) DO NOTHING
