SELECT g.id, g.queue, g.code, g.template, g.count, g.first_seen, g.last_seen, g.state, g.state_since, g.state_by,
       (SELECT clock_timestamp() + $2 * interval '1 microsecond') AS now
FROM ichido.failure_groups g WHERE g.id = $1
FOR UPDATE
