DELETE FROM entry WHERE id = ?1 AND state != 'sending'
