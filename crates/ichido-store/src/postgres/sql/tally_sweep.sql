-- Deletes the oldest minute, if no window reaches back that far.
DELETE FROM ichido.tallies
WHERE minute = (
    SELECT min(minute) FROM ichido.tallies
    WHERE minute < (SELECT clock_timestamp() + ($2::bigint - $1::bigint) * interval '1 microsecond'))
