-- One unique insert is the claim. Rows are sorted by name, so two batches cannot deadlock.
INSERT INTO ichido.ledger
    (name, operation, identity, key, fingerprint, request_digest, state, fence, claim_id, lease_until, created_at, claimed_at, hops, trace, guarantee)
SELECT i.name, i.operation, i.identity, i.key, i.fingerprint, i.request_digest,
       'claimed', nextval('ichido.fence'), i.claim_id, now.at + i.lease * interval '1 microsecond', now.at, now.at, i.hops, i.trace, i.guarantee
FROM unnest($1::bytea[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::bytea[], $7::uuid[], $8::bigint[], $9::text[],
                   $10::text[], $11::text[])
         AS i (name, operation, identity, key, fingerprint, request_digest, claim_id, lease, hops, trace, guarantee),
     (SELECT clock_timestamp() + $12 * interval '1 microsecond' AS at) AS now
ON CONFLICT (name) DO NOTHING
RETURNING claim_id, fence
