-- Deletes the oldest replays, if they are no longer kept.
DELETE FROM ichido_replays
WHERE about IN (SELECT about FROM ichido_replays WHERE first_at < ?2 - ?1 ORDER BY first_at LIMIT ?3)
