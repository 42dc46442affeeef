-- Finds which of these messages (?1) their claims (?2) hold or held. As long as a lease exists, it names all messages claimed
-- under it. The ids of a lease are looked up among the requested ones, not the other way round: there may be thousands.
SELECT unhex(h.value) AS message_id, l.fence
FROM json_each(?2) AS f
CROSS JOIN ichido_leases l ON l.fence = f.value
CROSS JOIN json_each(l.message_ids) AS h
WHERE (h.value, l.fence) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?1))
