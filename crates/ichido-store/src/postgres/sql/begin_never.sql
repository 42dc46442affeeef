-- What is given back must not begin any more, so its mark is made here, in the transaction that gives it back. Those that have one
-- already are left out of the answer: their call may have begun. Rows come sorted.
INSERT INTO ichido.begun (message_id, fence)
SELECT i.message_id, i.fence FROM unnest($1::uuid[], $2::bigint[]) AS i (message_id, fence)
ON CONFLICT DO NOTHING
RETURNING message_id, fence
