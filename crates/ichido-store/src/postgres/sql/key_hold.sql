-- Marks outcomes as unknown. `was` says whether they were before: only a change is an entry of the audit trail.
UPDATE ichido.ledger l SET state = 'unknown', lease_until = NULL
FROM unnest($1::bytea[], $2::bigint[]) AS i (name, fence) JOIN ichido.ledger was ON was.name = i.name
WHERE l.name = i.name AND l.fence = i.fence AND l.state IN ('claimed', 'unknown')
RETURNING l.name, was.state AS was
