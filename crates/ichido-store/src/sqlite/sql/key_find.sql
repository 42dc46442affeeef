-- Finds the records of these names. `held`: an unfinished message still uses the key.
SELECT l.name, l.operation, l.identity, l.key, l.fingerprint, l.request_digest, l.state, l.fence, l.claim_id, l.lease_until,
       l.status, l.headers, l.body, l.result_digest, l.message_id, l.created_at, l.claimed_at, l.completed_at, l.expires_at,
       l.hops, l.trace, l.guarantee,
       l.message_id IS NOT NULL
           AND EXISTS (SELECT 1 FROM ichido_messages m WHERE m.id = l.message_id)
           AND NOT EXISTS (SELECT 1 FROM ichido_events e WHERE e.message_id = l.message_id AND e.to_state IN ('sent', 'cancelled')) AS held
FROM ichido_ledger l
WHERE l.name IN (SELECT unhex(value) FROM json_each(?1))
