-- Stores outcomes, each under its fence. Rows are sorted by name. The subquery hides the length of the arrays, as
-- in key_find.sql.
UPDATE ichido.ledger l
SET state = i.state, lease_until = NULL, status = i.status, headers = i.headers, body = i.body,
    result_digest = i.result_digest, message_id = i.message_id,
    completed_at = now.at, expires_at = now.at + i.ttl * interval '1 microsecond'
FROM unnest((SELECT $1::bytea[]), $2::bigint[], $3::text[], $4::smallint[], $5::bytea[], $6::bytea[], $7::bytea[], $8::uuid[], $9::bigint[])
         AS i (name, fence, state, status, headers, body, result_digest, message_id, ttl),
     (SELECT clock_timestamp() + $10 * interval '1 microsecond' AS at) AS now
WHERE l.name = i.name AND l.fence = i.fence AND l.state IN ('claimed', 'unknown')
RETURNING l.name
