-- A search reads ids from an index first, newest first, and then the messages of these ids (message_list.sql): so it examines
-- a bounded number of messages, whatever its filters are.
SELECT id FROM ichido.messages WHERE id < $1 ORDER BY id DESC LIMIT $2
