-- The last fence that was issued. A sequence belongs to no snapshot: it is at least what the snapshot's entries have.
SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS fence FROM ichido.fence
