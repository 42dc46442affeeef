-- Deletes the oldest minute, if no window reaches back that far.
DELETE FROM ichido.counters
WHERE minute = (
    SELECT min(minute) FROM ichido.counters
    WHERE minute < (SELECT clock_timestamp() + ($2::bigint - $1::bigint) * interval '1 microsecond'))
