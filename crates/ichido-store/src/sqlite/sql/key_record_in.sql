-- Records an outcome in the caller's own transaction, as its last statement, unless the key has a record: then nothing is
-- inserted, and the caller rolls back. It reads the clock itself, as in now.sql, because each statement of a caller's
-- connection is a trip to its thread.
--
-- The fence is greater than that of any earlier claim. It is not issued: nobody settles this record by it. ?19 is not used.
INSERT INTO ichido_ledger
    (name, operation, identity, key, fingerprint, request_digest, guarantee, state, fence, claim_id, status, headers, body,
     result_digest, message_id, hops, trace, created_at, claimed_at, completed_at, expires_at)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, (SELECT last + 1 FROM ichido_fence WHERE one = 1), ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,
       i.at, i.at, i.at, i.at + ?18
FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + ?17 AS at) AS i
WHERE true -- Otherwise the parser takes ON for the condition of a join.
ON CONFLICT (name) DO NOTHING
