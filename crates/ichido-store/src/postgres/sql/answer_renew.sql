UPDATE ichido.answers
SET held_until = clock_timestamp() + $2 * interval '1 microsecond' + $3 * interval '1 microsecond'
WHERE holder = $1
