-- A message that is given back must not start any more, so its mark is made here, in the same transaction. Messages that
-- already have a mark are not returned: their call may have started. Rows are sorted.
INSERT INTO ichido.start_marks (message_id, fence)
SELECT i.message_id, i.fence FROM unnest($1::uuid[], $2::bigint[]) AS i (message_id, fence)
ON CONFLICT DO NOTHING
RETURNING message_id, fence
