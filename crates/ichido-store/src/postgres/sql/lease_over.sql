WITH unmarked AS (DELETE FROM ichido.start_marks WHERE fence = ANY ($1))
DELETE FROM ichido.leases WHERE fence = ANY ($1)
