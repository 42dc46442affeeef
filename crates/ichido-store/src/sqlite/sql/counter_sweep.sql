-- Deletes the oldest minute, if no window reaches back that far.
DELETE FROM ichido_counters WHERE minute = (SELECT min(minute) FROM ichido_counters WHERE minute < ?2 - ?1)
