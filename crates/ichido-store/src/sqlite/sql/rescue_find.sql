-- Finds one lapsed lease that ends between ?1 and ?4, of the queues ?3 if any are named, except those that this process still
-- holds by its own clock (?2). Nothing is locked: the whole rescue is one transaction of the single writer, so no settle comes
-- between.
SELECT fence, queue, node, claimed_at, start_marks, suspect, guarantee, keeps_for, max_time_in_flight, json_array_length(message_ids) AS held
FROM ichido_leases
WHERE lease_until BETWEEN ?1 AND ?4 AND fence NOT IN (SELECT value FROM json_each(?2))
  AND (?3 IS NULL OR queue IN (SELECT value FROM json_each(?3)))
ORDER BY lease_until
LIMIT 1
