INSERT OR IGNORE INTO temp.ichido_listed (message_id, fence, step)
SELECT unhex(value ->> 0), value ->> 1, value ->> 2 FROM json_each(?1)
