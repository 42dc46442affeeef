-- One node at a time holds a singleton task: the current holder, or any node once the lease has lapsed. A lease has lapsed when
-- its time has passed, or when it ends later than any lease ($5) can, because the clock was ahead when it was taken.
INSERT INTO ichido.singleton_tasks AS c (task, node, lease_until)
SELECT $1, $2, now.at + $3 * interval '1 microsecond' FROM (SELECT clock_timestamp() + $4 * interval '1 microsecond' AS at) AS now
ON CONFLICT (task) DO UPDATE SET node = excluded.node, lease_until = excluded.lease_until
    WHERE c.node = excluded.node OR c.lease_until <= clock_timestamp() + $4 * interval '1 microsecond'
       OR c.lease_until > clock_timestamp() + $4 * interval '1 microsecond' + $5 * interval '1 microsecond'
RETURNING node
