-- Returns the last entries before each of these, of the same message: ?2 of them, and the others that share a fence with the
-- first.
SELECT e.message_id, e.fence, e.step, e.claimed_at, e.at, e.from_state, e.to_state, e.kind, e.attempts, e.deaths, e.doubt_since,
       e.in_flight_until, e.effect, e.code, e.status, e.result_digest, e.receipt, e.excerpt, e.node, e.actor, e.about,
       m.id AS m_id, m.queue AS m_queue, m.identity AS m_identity, m.key AS m_key, m.digest AS m_digest, m.trace AS m_trace, m.trace_id AS m_trace_id,
       m.replacement_of AS m_made_from, m.created_at AS m_created_at, m.max_attempts AS m_max_attempts
FROM json_each(?1) AS i
CROSS JOIN ichido_events e ON e.message_id = unhex(i.value ->> 0)
    AND (e.fence, e.step) < (i.value ->> 1, i.value ->> 2)
    AND e.fence >= coalesce(
        (SELECT p.fence FROM ichido_events p
         WHERE p.message_id = unhex(i.value ->> 0) AND (p.fence, p.step) < (i.value ->> 1, i.value ->> 2)
         ORDER BY p.fence DESC, p.step DESC LIMIT 1 OFFSET ?2 - 1), -9223372036854775808)
LEFT JOIN ichido_messages m ON m.id = e.message_id
