-- Lists the audit trail for people, newest first: the entries of one kind.
SELECT e.message_id, e.fence, e.step, e.claimed_at, e.at, e.from_state, e.to_state, e.kind, e.attempts, e.deaths, e.doubt_since,
       e.in_flight_until, e.effect, e.code, e.status, e.result_digest, e.receipt, e.excerpt, e.node, e.actor, e.about,
       m.id AS m_id, m.queue AS m_queue, m.identity AS m_identity, m.key AS m_key, m.digest AS m_digest, m.trace AS m_trace, m.trace_id AS m_trace_id,
       m.replacement_of AS m_made_from, m.created_at AS m_created_at, m.max_attempts AS m_max_attempts
FROM ichido.events e
LEFT JOIN ichido.messages m ON m.id = e.message_id
WHERE (e.actor IS NOT NULL OR e.about IS NOT NULL AND e.kind <> 'keys_sealed') AND e.kind = $5 AND (e.fence, e.message_id, e.step) < ($1, $2, $3)
ORDER BY e.fence DESC, e.message_id DESC, e.step DESC LIMIT $4
