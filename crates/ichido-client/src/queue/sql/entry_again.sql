-- A person's decision: starts over with the same key.
UPDATE entry SET state = 'waiting', attempts = 0, sends = 0, due_passed_us = 0, cause = 'manual', is_released = ?2,
    code = NULL, reason = NULL
WHERE id = ?1 AND state = ?3
