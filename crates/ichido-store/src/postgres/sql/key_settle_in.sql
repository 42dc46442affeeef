-- One outcome within the caller's own transaction: it must touch one row, or the caller rolls back. The answer must mean
-- durable, so a transaction that would commit without waiting for the disk is told to wait; one that waits for more keeps that.
UPDATE ichido.ledger l
SET state = $3, lease_until = NULL, status = $4, headers = $5, body = $6, result_digest = $7, message_id = $8,
    completed_at = now.at, expires_at = now.at + $9 * interval '1 microsecond'
FROM (SELECT clock_timestamp() + $10 * interval '1 microsecond' AS at) AS now,
     (SELECT set_config('synchronous_commit',
                        CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN 'on'
                             ELSE current_setting('synchronous_commit') END, true) AS commits) AS durable
WHERE l.name = $1 AND l.fence = $2 AND l.state IN ('claimed', 'unknown') AND durable.commits <> 'off'
