INSERT INTO ichido.failure_group_deltas (group_id, queue, code, template, delta, failed, at)
SELECT i.group_id, i.queue, i.code, i.template, i.delta, i.failed, now.at
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::integer[], $6::boolean[])
         AS i (group_id, queue, code, template, delta, failed),
     (SELECT clock_timestamp() + $7 * interval '1 microsecond' AS at) AS now
