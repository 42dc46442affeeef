-- Finds the records of these names, and the time of the read. `held`: an unfinished message still uses the key.
--
-- The array is a subquery, which hides its length from the planner: a short one would be planned anew for each look-up, which takes
-- ten times as long as the look-up.
SELECT l.name, l.operation, l.identity, l.key, l.fingerprint, l.request_digest, l.state, l.fence, l.claim_id, l.lease_until,
       l.status, l.headers, l.body, l.result_digest, l.message_id, l.created_at, l.claimed_at, l.completed_at, l.expires_at,
       l.hops, l.trace, l.guarantee,
       l.message_id IS NOT NULL
           AND EXISTS (SELECT 1 FROM ichido.messages m WHERE m.id = l.message_id)
           AND NOT EXISTS (SELECT 1 FROM ichido.events e WHERE e.message_id = l.message_id AND e.to_state IN ('sent', 'cancelled')) AS held,
       now.at AS now
FROM ichido.ledger l, (SELECT clock_timestamp() + $2 * interval '1 microsecond' AS at) AS now
WHERE l.name = ANY ((SELECT $1::bytea[])::bytea[])
