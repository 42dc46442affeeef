INSERT INTO ichido_failure_group_deltas (group_id, queue, code, template, delta, failed, at)
SELECT unhex(i.value ->> 0), i.value ->> 1, i.value ->> 2, i.value ->> 3, i.value ->> 4, i.value ->> 5, ?2
FROM json_each(?1) AS i
