-- Returns the seals of entries that are sealed.
SELECT e.message_id, e.fence, e.step, s.number AS seal
FROM unnest($1::uuid[], $2::bigint[], $3::smallint[]) AS i (message_id, fence, step)
JOIN ichido.events e ON e.message_id = i.message_id AND e.fence = i.fence AND e.step = i.step
CROSS JOIN LATERAL (SELECT number FROM ichido.seals WHERE until_position > e.position ORDER BY until_position LIMIT 1) AS s
