-- Lists the messages that leases name, each with the greatest of their fences.
SELECT i.message_id, max(l.fence) AS fence
FROM ichido.leases l CROSS JOIN LATERAL unnest(l.message_ids) AS i (message_id)
GROUP BY i.message_id
