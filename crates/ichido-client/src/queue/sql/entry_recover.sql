-- The sender of these is gone, because we hold its lock now. They may have arrived.
UPDATE entry SET state = 'waiting', effect = CASE effect WHEN 'not_done' THEN 'unknown' ELSE effect END
WHERE destination = ?1 AND state = 'sending'
