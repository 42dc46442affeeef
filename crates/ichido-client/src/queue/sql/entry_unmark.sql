-- It provably never left: undoes the mark of the attempt.
UPDATE entry SET state = 'waiting', sends = ?2, sends_all = ?3, first_sent_us = ?4, first_sent_passed_us = ?5,
    first_sent_set_backs = ?6, cause = ?7, is_released = ?8
WHERE id = ?1 AND state = 'sending'
