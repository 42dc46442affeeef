-- Lists the records whose names begin with the hash of a key: a range of the primary key. `held` as in key_find.sql.
SELECT l.name, l.operation, l.identity, l.key, l.fingerprint, l.request_digest, l.state, l.fence, l.claim_id, l.lease_until,
       l.status, l.headers, l.body, l.result_digest, l.message_id, l.created_at, l.claimed_at, l.completed_at, l.expires_at,
       l.hops, l.trace, l.guarantee,
       l.message_id IS NOT NULL
           AND EXISTS (SELECT 1 FROM ichido.messages m WHERE m.id = l.message_id)
           AND NOT EXISTS (SELECT 1 FROM ichido.events e WHERE e.message_id = l.message_id AND e.to_state IN ('sent', 'cancelled')) AS held
FROM ichido.ledger l
WHERE l.name >= $1 AND l.name <= $2
ORDER BY l.name
LIMIT $3
