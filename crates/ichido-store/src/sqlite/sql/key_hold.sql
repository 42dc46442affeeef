UPDATE ichido_ledger SET state = 'unknown', lease_until = NULL
WHERE (name, fence) IN (SELECT unhex(value ->> 0), value ->> 1 FROM json_each(?1)) AND state IN ('claimed', 'unknown')
RETURNING name, fence
