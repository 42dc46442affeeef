-- Notes the seal of entries for people, so that a list can show it.
UPDATE ichido_events SET seal = ?2
FROM json_each(?1) AS i
WHERE message_id = unhex(i.value ->> 0) AND fence = i.value ->> 1 AND step = i.value ->> 2
