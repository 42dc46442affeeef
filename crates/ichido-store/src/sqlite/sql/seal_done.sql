DELETE FROM ichido_unsealed
WHERE (message_id, fence, step) IN (SELECT unhex(value ->> 0), value ->> 1, value ->> 2 FROM json_each(?1))
