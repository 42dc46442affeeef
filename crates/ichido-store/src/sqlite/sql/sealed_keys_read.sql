-- Returns the records of these names, with their responses.
SELECT l.name, l.operation, l.identity, l.key, l.guarantee, l.state, l.fingerprint, l.request_digest, l.claim_id, l.fence, l.status,
       l.result_digest, l.message_id, l.hops, l.trace, l.created_at, l.claimed_at, l.completed_at, l.expires_at,
       l.headers, l.body
FROM json_each(?1) AS i
CROSS JOIN ichido_ledger l ON l.name = unhex(i.value)
