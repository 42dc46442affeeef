-- Returns the records of these names, with the hashes of their responses.
SELECT l.name, l.operation, l.identity, l.key, l.guarantee, l.state, l.fingerprint, l.request_digest, l.claim_id, l.fence, l.status,
       l.result_digest, l.message_id, l.hops, l.trace, l.created_at, l.claimed_at, l.completed_at, l.expires_at,
       sha256(l.headers) AS headers, sha256(l.body) AS body
FROM ichido.ledger l
WHERE l.name = ANY ($1)
