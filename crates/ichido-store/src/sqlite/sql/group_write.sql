UPDATE ichido_failure_groups
SET count = i.value ->> 1, first_seen = i.value ->> 2, last_seen = i.value ->> 3, state = i.value ->> 4,
    state_since = i.value ->> 5, state_by = i.value ->> 6, urgency = i.value ->> 7
FROM json_each(?1) AS i
WHERE ichido_failure_groups.id = unhex(i.value ->> 0)
