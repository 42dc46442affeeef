-- Returns the sizes of these messages' requests. The length of a value that is stored out of line is stored with the row.
SELECT coalesce(sum(octet_length(request)), 0)::bigint AS bytes FROM ichido.messages WHERE id = ANY ($1)
