-- Deletes the oldest hour, if it is no longer kept.
DELETE FROM ichido_counter_hours WHERE hour = (SELECT min(hour) FROM ichido_counter_hours WHERE hour < ?2 - ?1)
