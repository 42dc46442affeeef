-- Returns the holder of a valid claim ?1 on message ?2, unless the message has ended under it. A claim of this process is judged
-- by its own clock (?4), another one by the wall clock (?3).
SELECT node FROM ichido_leases
WHERE fence = ?1 AND ?2 IN (SELECT unhex(value) FROM json_each(message_ids))
  AND (lease_until > ?3 OR fence IN (SELECT value FROM json_each(?4)))
  AND NOT EXISTS (SELECT 1 FROM ichido_events WHERE message_id = ?2 AND fence = ?1)
