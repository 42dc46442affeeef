-- The oldest minute, if no window looks back so far.
DELETE FROM ichido.tallies
WHERE minute = (
    SELECT min(minute) FROM ichido.tallies
    WHERE minute < (SELECT clock_timestamp() + ($2 - $1) * interval '1 microsecond'))
