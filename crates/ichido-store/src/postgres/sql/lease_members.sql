-- Finds which of these messages their claims hold or held. As long as a lease exists, it names all messages claimed under it.
SELECT i.message_id, i.fence
FROM unnest($1::uuid[], $2::bigint[]) AS i (message_id, fence)
JOIN (SELECT l.fence, unnest(l.message_ids) AS message_id FROM ichido.leases l WHERE l.fence = ANY ($3)) AS held USING (fence, message_id)
