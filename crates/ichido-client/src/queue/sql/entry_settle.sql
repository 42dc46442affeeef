UPDATE entry SET state = ?2, attempts = ?3, due_passed_us = ?4, effect = ?5, code = ?6, reason = ?7
WHERE id = ?1 AND state = 'sending'
