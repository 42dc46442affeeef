-- Like message_ids.sql, for messages that have failed with a code. Whether it is their last code is known when they are read.
SELECT DISTINCT message_id AS id FROM ichido.events WHERE code = $3 AND message_id < $1 ORDER BY message_id DESC LIMIT $2
