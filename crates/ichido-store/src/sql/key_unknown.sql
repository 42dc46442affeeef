-- Lists keys with an unknown outcome, oldest first, using their own index. They have no outcome, so no message holds them.
SELECT l.name, l.operation, l.identity, l.key, l.fingerprint, l.request_digest, l.state, l.fence, l.claim_id, l.lease_until,
       l.status, l.headers, l.body, l.result_digest, l.message_id, l.created_at, l.claimed_at, l.completed_at, l.expires_at,
       l.hops, l.trace, l.guarantee, false AS held
FROM ichido.ledger l
WHERE l.state = 'unknown' AND (l.created_at, l.name) > ($1, $2)
ORDER BY l.created_at, l.name
LIMIT $3
