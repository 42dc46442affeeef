-- Deletes the oldest hour, if it is no longer kept.
DELETE FROM ichido.counter_hours
WHERE hour = (
    SELECT min(hour) FROM ichido.counter_hours
    WHERE hour < (SELECT clock_timestamp() + ($2::bigint - $1::bigint) * interval '1 microsecond'))
