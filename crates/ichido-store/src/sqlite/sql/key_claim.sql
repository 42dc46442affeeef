-- One unique insert is the claim. Fences follow ?2, the last one drawn; those of rows that were there already stay unused.
INSERT INTO ichido_ledger
    (name, operation, identity, key, fingerprint, request_digest, state, fence, claim_id, lease_until, created_at, claimed_at, hops, trace)
SELECT unhex(i.value ->> 0), i.value ->> 1, i.value ->> 2, i.value ->> 3, unhex(i.value ->> 4), unhex(i.value ->> 5),
       'claimed', ?2 + i.key + 1, unhex(i.value ->> 6), i.value ->> 7, ?3, ?3, i.value ->> 8, i.value ->> 9
FROM json_each(?1) AS i
WHERE true -- Without it, SQLite reads ON as a join's.
ON CONFLICT (name) DO NOTHING
RETURNING claim_id, fence
