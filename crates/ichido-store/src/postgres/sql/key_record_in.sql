-- Records an outcome in the caller's own transaction, as its last statement, unless the key has a record. It waits for another
-- transaction that records the same key: if that one commits, nothing is inserted here, and the caller rolls back. Neither
-- is anything inserted if $19 and this is not the transaction that was begun: a handler may have ended that.
--
-- A response must mean durable: a transaction that would commit without waiting for the disk is made to wait; a stricter setting
-- is kept.
INSERT INTO ichido.ledger
    (name, operation, identity, key, fingerprint, request_digest, guarantee, state, fence, claim_id, status, headers, body,
     result_digest, message_id, hops, trace, created_at, claimed_at, completed_at, expires_at)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, nextval('ichido.fence'), $9, $10, $11, $12, $13, $14, $15, $16,
        statement_timestamp() + $17 * interval '1 microsecond', statement_timestamp() + $17 * interval '1 microsecond',
        statement_timestamp() + $17 * interval '1 microsecond', statement_timestamp() + ($17 + $18) * interval '1 microsecond'
WHERE NOT $19::boolean OR current_setting('ichido.transaction', true) = 'open'
ON CONFLICT (name) DO NOTHING
RETURNING CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN set_config('synchronous_commit', 'on', true) END
