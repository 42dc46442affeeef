-- Lists the messages that leases name, each with the greatest of their fences.
SELECT unhex(i.value) AS message_id, max(l.fence) AS fence
FROM ichido_leases l CROSS JOIN json_each(l.message_ids) AS i
GROUP BY i.value
