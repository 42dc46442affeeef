-- Replaces a lapsed claim, a lost outcome or an expired record, if it is still the one that was read. A renewal changes the
-- lease but not the fence, so both are compared. A lease that ends later than any ($12) can has lapsed too. A record expires
-- when retention ($13) has reached its time as well.
UPDATE ichido.ledger l
SET state = 'claimed', fence = nextval('ichido.fence'), claim_id = $4, fingerprint = $5, request_digest = $6,
    lease_until = now.at + $7 * interval '1 microsecond', claimed_at = now.at, hops = $8, trace = $9, guarantee = $10,
    -- A replaced action started with its first claim; an expired one starts again.
    created_at = CASE WHEN l.state IN ('applied', 'refused') THEN now.at ELSE l.created_at END,
    status = NULL, headers = NULL, body = NULL, result_digest = NULL, message_id = NULL, completed_at = NULL, expires_at = NULL
FROM (SELECT clock_timestamp() + $11 * interval '1 microsecond' AS at) AS now
WHERE l.name = $1 AND l.fence = $2 AND l.state = $3
  AND (l.lease_until IS NULL OR l.lease_until <= now.at OR l.lease_until > now.at + $12 * interval '1 microsecond')
  AND (l.expires_at IS NULL OR l.expires_at <= least(now.at, $13::timestamptz))
RETURNING l.fence
