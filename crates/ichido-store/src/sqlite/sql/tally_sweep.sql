-- The oldest minute, if no window looks back so far.
DELETE FROM ichido_tallies WHERE minute = (SELECT min(minute) FROM ichido_tallies WHERE minute < ?2 - ?1)
