-- Returns the entries that a seal lists.
SELECT e.message_id, e.fence, e.step, e.claimed_at, e.at, e.from_state, e.to_state, e.kind, e.attempts, e.deaths, e.doubt_since,
       e.in_flight_until, e.effect, e.code, e.status, e.result_digest, e.receipt, e.excerpt, e.node, e.actor, e.about,
       m.id AS m_id, m.queue AS m_queue, m.identity AS m_identity, m.key AS m_key, m.digest AS m_digest, m.trace AS m_trace, m.trace_id AS m_trace_id,
       m.replacement_of AS m_made_from, m.created_at AS m_created_at,
       m.max_attempts AS m_max_attempts
FROM json_each(?1) AS i
CROSS JOIN ichido_events e ON e.message_id = unhex(i.value ->> 0) AND e.fence = i.value ->> 1 AND e.step = i.value ->> 2
LEFT JOIN ichido_messages m ON m.id = e.message_id
