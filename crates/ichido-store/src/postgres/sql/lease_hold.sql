-- Finds which of these claims are still valid, and the time. A rescue skips locked rows, or has deleted the row before we lock
-- it. The lock is the one that a later deletion needs, and is taken in one order: two nodes that report on the same claims wait
-- for each other in turn and cannot deadlock.
SELECT fence, node, clock_timestamp() + $2 * interval '1 microsecond' AS now FROM ichido.leases WHERE fence = ANY ($1)
ORDER BY fence FOR UPDATE
