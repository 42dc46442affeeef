UPDATE ichido_ledger SET lease_until = i.lease_until
FROM (SELECT unhex(value ->> 0) AS name, value ->> 1 AS fence, ?2 + (value ->> 2) AS lease_until FROM json_each(?1)) AS i
WHERE ichido_ledger.name = i.name AND ichido_ledger.fence = i.fence AND ichido_ledger.state = 'claimed'
RETURNING name, fence
