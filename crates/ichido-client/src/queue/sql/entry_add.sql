INSERT INTO entry (destination, method, path, identity, key, headers, body, created_us, state, attempts, sends, sends_all,
                   due_passed_us, cause, is_released, effect)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'waiting', 0, 0, ?9, ?10, ?11, 0, 'not_done')
RETURNING id
