-- Replaces a lapsed claim, a lost outcome or an expired record, if it is still the one that was read: another claim of the same
-- batch may have been first. The core decides whether the lease has lapsed, because a claim of this process lapses by its own
-- clock.
UPDATE ichido_ledger
SET state = 'claimed', fence = ?4, claim_id = ?5, fingerprint = ?6, request_digest = ?7,
    lease_until = ?8, claimed_at = ?9, hops = ?10, trace = ?11, guarantee = ?12,
    -- A replaced action started with its first claim; an expired one starts again.
    created_at = CASE WHEN state IN ('applied', 'refused') THEN ?9 ELSE created_at END,
    status = NULL, headers = NULL, body = NULL, result_digest = NULL, message_id = NULL, completed_at = NULL, expires_at = NULL
WHERE name = ?1 AND fence = ?2 AND state = ?3
