-- Stores outcomes, each under its fence. The row is repeated for each outcome; no two have the same name.
WITH i (name, fence, state, status, headers, body, result_digest, message_id, completed_at, expires_at) AS (VALUES
(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
)
UPDATE ichido_ledger
SET state = i.state, lease_until = NULL, status = i.status, headers = i.headers, body = i.body, result_digest = i.result_digest,
    message_id = i.message_id, completed_at = i.completed_at, expires_at = i.expires_at
FROM i
WHERE ichido_ledger.name = i.name AND ichido_ledger.fence = i.fence AND ichido_ledger.state IN ('claimed', 'unknown')
