-- One node at a time does the upkeep: the one that holds it, or anyone once its lease has lapsed.
INSERT INTO ichido.caretaker AS c (node, lease_until)
SELECT $1, now.at + $2 * interval '1 microsecond' FROM (SELECT clock_timestamp() + $3 * interval '1 microsecond' AS at) AS now
ON CONFLICT (one) DO UPDATE SET node = excluded.node, lease_until = excluded.lease_until
    WHERE c.node = excluded.node OR c.lease_until <= clock_timestamp() + $3 * interval '1 microsecond'
RETURNING node
