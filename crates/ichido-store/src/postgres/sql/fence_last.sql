-- Returns the last issued fence. A sequence is not part of a snapshot: the value is at least that of the snapshot's entries.
SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS fence FROM ichido.fence
