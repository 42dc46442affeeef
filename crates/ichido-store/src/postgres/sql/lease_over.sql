WITH unmarked AS (DELETE FROM ichido.begun WHERE fence = ANY ($1))
DELETE FROM ichido.leases WHERE fence = ANY ($1)
