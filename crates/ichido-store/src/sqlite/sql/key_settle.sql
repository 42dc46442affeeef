-- Outcomes, each under its fence. JSON carries no bytes: headers and bodies are parts of one blob (?2), told by place and
-- length; a NULL place is NULL.
UPDATE ichido_ledger
SET state = i.state, lease_until = NULL, status = i.status, headers = substr(?2, i.headers_at, i.headers_len),
    body = substr(?2, i.body_at, i.body_len), result_digest = i.result_digest, message_id = i.message_id,
    completed_at = ?3, expires_at = i.expires_at
FROM (SELECT unhex(value ->> 0) AS name, value ->> 1 AS fence, value ->> 2 AS state, value ->> 3 AS status,
             value ->> 4 AS headers_at, value ->> 5 AS headers_len, value ->> 6 AS body_at, value ->> 7 AS body_len,
             unhex(value ->> 8) AS result_digest, unhex(value ->> 9) AS message_id, value ->> 10 AS expires_at
      FROM json_each(?1)) AS i
WHERE ichido_ledger.name = i.name AND ichido_ledger.fence = i.fence AND ichido_ledger.state IN ('claimed', 'unknown')
RETURNING name, fence
