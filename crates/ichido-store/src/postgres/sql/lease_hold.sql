-- Which of these claims still stand, and what time it is. A rescue passes over what is locked, or has deleted the row before we
-- get it. Locked as for the deletion that may follow, and in one order: two nodes that report of the same claims wait for each
-- other in turn, never crosswise.
SELECT fence, node, clock_timestamp() + $2 * interval '1 microsecond' AS now FROM ichido.leases WHERE fence = ANY ($1)
ORDER BY fence FOR UPDATE
