INSERT INTO ichido.queue_facts (node, queue, guarantee, keeps_for, requeue, max_attempts, horizon, ended)
SELECT $1::uuid, i.*, false FROM unnest($2::text[], $3::text[], $4::bigint[], $5::boolean[], $6::integer[], $7::bigint[]) AS i
ON CONFLICT (queue, node) DO UPDATE SET guarantee = excluded.guarantee, keeps_for = excluded.keeps_for, requeue = excluded.requeue,
    max_attempts = excluded.max_attempts, horizon = excluded.horizon, ended = false
