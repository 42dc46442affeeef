-- Which of these claims still stand, and what time it is. A rescue waits for the share lock, or has deleted the row before we get it.
SELECT fence, node, clock_timestamp() + $2 * interval '1 microsecond' AS now FROM ichido.leases WHERE fence = ANY ($1) FOR SHARE
