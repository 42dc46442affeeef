-- Creates the groups that do not exist, and locks and returns all. In the order of their ids, so two nodes cannot deadlock. The
-- update changes nothing: without it, a group that exists would be neither locked nor returned.
INSERT INTO ichido.failure_groups AS g (id, queue, code, template, count, first_seen, last_seen, state, state_since, urgency)
SELECT i.id, i.queue, i.code, i.template, 0, i.at, i.at, i.state, i.at, i.urgency
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::text[], $7::smallint[])
         AS i (id, queue, code, template, at, state, urgency)
ORDER BY i.id
ON CONFLICT (id) DO UPDATE SET id = g.id
RETURNING id, queue, code, template, count, first_seen, last_seen, state, state_since, state_by
