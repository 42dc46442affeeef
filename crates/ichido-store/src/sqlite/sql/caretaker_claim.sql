-- One node at a time does the upkeep: the one that holds it, or anyone once its lease has lapsed.
INSERT INTO ichido_caretaker AS c (one, node, lease_until) VALUES (1, ?1, ?2)
ON CONFLICT (one) DO UPDATE SET node = excluded.node, lease_until = excluded.lease_until
    WHERE c.node = excluded.node OR c.lease_until <= ?3
RETURNING node
