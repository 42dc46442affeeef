-- Messages; a trigger makes them claimable in the same statement. JSON carries no bytes: requests are parts of one blob (?2),
-- told by place and length.
INSERT INTO ichido_messages
    (id, queue, identity, key, digest, content_type, request, trace, priority, tries_allowed, due, made_from, created_at)
SELECT unhex(i.value ->> 0), i.value ->> 1, i.value ->> 2, i.value ->> 3, unhex(i.value ->> 4), i.value ->> 5,
       substr(?2, i.value ->> 6, i.value ->> 7), i.value ->> 8, i.value ->> 9, i.value ->> 10, i.value ->> 11,
       unhex(i.value ->> 12), ?3
FROM json_each(?1) AS i
WHERE true -- Without it, SQLite reads ON as a join's.
ON CONFLICT (queue, identity, key) DO NOTHING
RETURNING id
