SELECT id, destination, method, path, key, length(body) AS body_bytes, created_us, state, attempts, sends_all, first_sent_us,
       due_passed_us, effect, code, reason
FROM entry WHERE ?1 < id AND (?2 IS NULL OR state = ?2) AND (?3 IS NULL OR destination = ?3) ORDER BY id LIMIT ?4
