SELECT queue, state, sum(count)::bigint AS count
FROM (SELECT queue, state, count FROM ichido.counts UNION ALL SELECT queue, state, delta FROM ichido.count_deltas) AS c
WHERE state <> 'closed' -- Dead letters that a person has closed: they wait for nobody.
GROUP BY queue, state
HAVING sum(count) <> 0
ORDER BY queue, state
