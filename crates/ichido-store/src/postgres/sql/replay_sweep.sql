-- Deletes the oldest replays, if they are no longer kept.
DELETE FROM ichido.replays
WHERE about IN (
    SELECT about FROM ichido.replays
    WHERE first_at < (SELECT clock_timestamp() + ($2::bigint - $1::bigint) * interval '1 microsecond')
    ORDER BY first_at LIMIT $3)
