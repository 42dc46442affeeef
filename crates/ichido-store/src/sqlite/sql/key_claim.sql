-- One unique insert is the claim; an existing name is not changed. The row is repeated for each claim.
INSERT INTO ichido_ledger
    (name, operation, identity, key, fingerprint, request_digest, state, fence, claim_id, lease_until, created_at, claimed_at, hops, trace, guarantee)
VALUES
(?, ?, ?, ?, ?, ?, 'claimed', ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO NOTHING
