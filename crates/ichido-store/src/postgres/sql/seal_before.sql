-- Returns the last $4 entries before each of these, of the same message.
SELECT e.message_id, e.fence, e.step, e.claimed_at, e.at, e.from_state, e.to_state, e.kind, e.attempts, e.deaths, e.doubt_since,
       e.in_flight_until, e.effect, e.code, e.status, e.result_digest, e.receipt, e.excerpt, e.node, e.actor, e.about,
       m.id AS m_id, m.queue AS m_queue, m.identity AS m_identity, m.key AS m_key, m.digest AS m_digest, m.trace AS m_trace, m.trace_id AS m_trace_id,
       m.replacement_of AS m_made_from, m.created_at AS m_created_at,
       m.max_attempts AS m_max_attempts
FROM unnest($1::uuid[], $2::bigint[], $3::smallint[]) AS i (message_id, fence, step)
CROSS JOIN LATERAL (
    SELECT p.message_id, p.fence, p.step, p.claimed_at, p.at, p.from_state, p.to_state, p.kind, p.attempts, p.deaths, p.doubt_since,
           p.in_flight_until, p.effect, p.code, p.status, p.result_digest, p.receipt, p.excerpt, p.node, p.actor, p.about
    FROM ichido.events p
    WHERE p.message_id = i.message_id AND (p.fence, p.step) < (i.fence, i.step)
    ORDER BY p.fence DESC, p.step DESC LIMIT $4
) AS e
LEFT JOIN ichido.messages m ON m.id = e.message_id
