SELECT id, state, headers, body, code, reason FROM entry
WHERE destination = ?1 AND method = ?2 AND path = ?3 AND identity = ?4 AND key = ?5
