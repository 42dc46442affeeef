SELECT r.about, r.count, r.first_at, r.last_at
FROM json_each(?1) AS i CROSS JOIN ichido_replays r ON r.about = unhex(i.value)
