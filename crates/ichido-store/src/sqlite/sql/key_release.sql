DELETE FROM ichido_ledger
WHERE (name, fence) IN (SELECT unhex(value ->> 0), value ->> 1 FROM json_each(?1)) AND state IN ('claimed', 'unknown')
RETURNING name, fence
