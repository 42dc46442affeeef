-- Whoever sent these is gone, as the lock says that is ours now. They may have arrived.
UPDATE entry SET state = 'waiting', effect = CASE effect WHEN 'not_done' THEN 'unknown' ELSE effect END
WHERE destination = ?1 AND state = 'sending'
