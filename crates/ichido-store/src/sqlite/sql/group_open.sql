-- Creates the groups that do not exist, and returns all. The update changes nothing: without it, a group that exists would not
-- be returned.
INSERT INTO ichido_failure_groups (id, queue, code, template, count, first_seen, last_seen, state, state_since, urgency)
SELECT unhex(i.value ->> 0), i.value ->> 1, i.value ->> 2, i.value ->> 3, 0, i.value ->> 4, i.value ->> 4, i.value ->> 5,
       i.value ->> 4, i.value ->> 6
FROM json_each(?1) AS i
WHERE true -- Without it, SQLite would parse ON as part of a join.
ON CONFLICT (id) DO UPDATE SET id = id
RETURNING id, queue, code, template, count, first_seen, last_seen, state, state_since, state_by
