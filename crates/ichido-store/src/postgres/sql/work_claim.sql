-- Claims up to $5 ready messages, most urgent and oldest first, under one lease row. They are returned unordered: the caller
-- sorts.
--
-- The scan starts at a cursor ($3, $4): earlier claims leave dead index entries before it, which cannot be cleaned up while an
-- old snapshot is open. Rows more urgent than the cursor's priority are always read.
--
-- The inner limits are subqueries, which hides their value from the planner. If it knows the value and has no statistics of a queue that
-- grew within the last minute, it expects fewer rows than the limit, and sorts the whole queue for each batch.
--
-- Only a message that was claimed before is looked up in the events: its last 32 tell when a person sent it again, which is since when
-- it waits. That covers 15 attempts; a message with more since then counts from its beginning.
WITH now AS (SELECT clock_timestamp() + $8 * interval '1 microsecond' AS at),
picked AS (
    DELETE FROM ichido.ready WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM (
            SELECT ctid, priority, message_id FROM (
                SELECT ctid, priority, message_id FROM ichido.ready
                WHERE queue = $1 AND priority < $3 AND NOT suspect
                ORDER BY priority, message_id LIMIT (SELECT $5::bigint) FOR UPDATE SKIP LOCKED) AS urgent
            UNION ALL
            SELECT ctid, priority, message_id FROM (
                SELECT ctid, priority, message_id FROM ichido.ready
                WHERE queue = $1 AND (priority, message_id) > ($3, $4) AND NOT suspect
                ORDER BY priority, message_id LIMIT (SELECT $5::bigint) FOR UPDATE SKIP LOCKED) AS rest
            LIMIT $5) AS picked_rows
        WHERE NOT EXISTS (SELECT 1 FROM ichido.queues WHERE name = $1 AND paused)))
    RETURNING message_id, priority, suspect, attempts, deaths, doubt_since, in_flight_until, last_fence
),
lease AS (
    INSERT INTO ichido.leases (fence, queue, node, claimed_at, lease_until, start_marks, suspect, guarantee, keeps_for, max_time_in_flight, message_ids)
    SELECT nextval('ichido.fence'), $1, $2, (SELECT at FROM now), (SELECT at FROM now) + $6 * interval '1 microsecond', $7, false,
           $9, $10::bigint, $11::bigint, array_agg(message_id)
    FROM picked HAVING count(*) > 0
    RETURNING fence, claimed_at, cardinality(message_ids) AS count
),
counted AS (
    INSERT INTO ichido.count_deltas (queue, state, delta)
    SELECT $1, c.state, c.sign * lease.count FROM lease, (VALUES ('queued', -1), ('sending', 1)) AS c (state, sign)
)
SELECT m.id, m.identity, m.key, m.content_type, m.request, m.digest, m.hops, m.trace, m.trace_id, m.item, m.priority, m.max_attempts, m.created_at, m.due,
       p.suspect, p.attempts, p.deaths, p.doubt_since, p.in_flight_until, l.fence, l.claimed_at,
       CASE WHEN p.last_fence IS NOT NULL THEN (
           SELECT max(e.at) FROM (SELECT * FROM ichido.events WHERE message_id = p.message_id ORDER BY fence DESC LIMIT 32) AS e
           WHERE e.kind = 'requeued' OR e.kind = 'decided') END AS requeued_at
FROM picked p JOIN ichido.messages m ON m.id = p.message_id CROSS JOIN lease l
