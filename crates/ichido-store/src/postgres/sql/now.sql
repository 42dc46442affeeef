SELECT clock_timestamp() + $1 * interval '1 microsecond' AS now
