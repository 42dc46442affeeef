-- Deletes the oldest minute, if it is no longer kept and its hour was rolled up.
DELETE FROM ichido_counters WHERE minute = (
    SELECT min(minute) FROM ichido_counters
    WHERE minute < min(?2 - ?1, (SELECT max(hour) + 3600000000 FROM ichido_counter_hours)))
