-- Claims one suspect message alone: a worker died holding it, and this attempt shows whether it was the cause. Its call is
-- always marked, so a message that was never called is not charged with a death.
WITH now AS (SELECT clock_timestamp() + $4 * interval '1 microsecond' AS at),
picked AS (
    DELETE FROM ichido.ready WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM ichido.ready WHERE queue = $1 AND suspect
          AND NOT EXISTS (SELECT 1 FROM ichido.queues WHERE name = $1 AND paused)
        ORDER BY priority, message_id LIMIT 1 FOR UPDATE SKIP LOCKED))
    RETURNING message_id, priority, suspect, attempts, deaths, doubt_since, in_flight_until, last_fence
),
lease AS (
    INSERT INTO ichido.leases (fence, queue, node, claimed_at, lease_until, start_marks, suspect, guarantee, keeps_for, max_time_in_flight, message_ids)
    SELECT nextval('ichido.fence'), $1, $2, now.at, now.at + $3 * interval '1 microsecond', true, true,
           $5, $6::bigint, $7::bigint, array_agg(message_id)
    FROM picked, now GROUP BY now.at
    RETURNING fence, claimed_at
),
counted AS (
    INSERT INTO ichido.count_deltas (queue, state, delta)
    SELECT $1, c.state, c.sign FROM (VALUES ('queued', -1), ('sending', 1)) AS c (state, sign)
    WHERE EXISTS (SELECT 1 FROM picked)
)
SELECT m.id, m.identity, m.key, m.content_type, m.request, m.digest, m.hops, m.trace, m.trace_id, m.item, m.priority, m.max_attempts, m.created_at, m.due,
       p.suspect, p.attempts, p.deaths, p.doubt_since, p.in_flight_until, l.fence, l.claimed_at,
       CASE WHEN p.last_fence IS NOT NULL THEN (
           SELECT max(e.at) FROM (SELECT * FROM ichido.events WHERE message_id = p.message_id ORDER BY fence DESC LIMIT 32) AS e
           WHERE e.kind = 'requeued' OR e.kind = 'decided') END AS requeued_at
FROM picked p JOIN ichido.messages m ON m.id = p.message_id CROSS JOIN lease l
