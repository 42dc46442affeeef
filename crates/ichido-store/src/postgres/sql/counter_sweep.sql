-- Deletes the oldest minute, if it is no longer kept and its hour was rolled up.
DELETE FROM ichido.counters
WHERE minute = (
    SELECT min(minute) FROM ichido.counters
    WHERE minute < (SELECT clock_timestamp() + ($2::bigint - $1::bigint) * interval '1 microsecond')
      AND minute < (SELECT max(hour) + interval '1 hour' FROM ichido.counter_hours))
