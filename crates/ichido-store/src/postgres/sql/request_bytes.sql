-- How many bytes these messages' requests have: of what is stored apart, its length stands beside it.
SELECT coalesce(sum(octet_length(request)), 0)::bigint AS bytes FROM ichido.messages WHERE id = ANY ($1)
