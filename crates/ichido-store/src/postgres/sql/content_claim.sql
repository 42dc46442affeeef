-- The first of equal contents within the window keeps its row. An expired one is replaced, if retention ($7) has reached its
-- time too.
INSERT INTO ichido.contents AS c (queue, identity, content, message_id, until)
SELECT $1, $2, $3, $4, now.at + $5 * interval '1 microsecond'
FROM (SELECT clock_timestamp() + $6 * interval '1 microsecond' AS at) AS now
ON CONFLICT (queue, identity, content) DO UPDATE
    SET message_id = excluded.message_id, until = excluded.until
    WHERE c.until <= least(clock_timestamp() + $6 * interval '1 microsecond', $7::timestamptz)
RETURNING message_id
