-- Which of these claims still stand. No lock: a rescue is a transaction of the same single writer.
SELECT fence, node FROM ichido_leases WHERE fence IN (SELECT value FROM json_each(?1))
