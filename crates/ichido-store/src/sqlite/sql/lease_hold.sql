-- Finds which of these claims are still valid. No lock is needed: a rescue is a transaction of the same single writer.
SELECT fence, node FROM ichido_leases WHERE fence IN (SELECT value FROM json_each(?1))
