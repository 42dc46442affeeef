-- Makes due messages claimable. The end of a failed message's backoff is a transition, so it is in the audit trail.
WITH now AS (SELECT clock_timestamp() + $2 * interval '1 microsecond' AS at),
due AS (
    DELETE FROM ichido.scheduled WHERE message_id = ANY (ARRAY (
        SELECT message_id FROM ichido.scheduled
        WHERE due <= (SELECT at FROM now)
        ORDER BY due LIMIT $1 FOR UPDATE SKIP LOCKED))
    RETURNING message_id, queue, priority, suspect, attempts, deaths, doubt_since, in_flight_until, last_fence, state
),
ready AS (
    INSERT INTO ichido.ready (message_id, queue, priority, suspect, attempts, deaths, doubt_since, in_flight_until, last_fence)
    SELECT message_id, queue, priority, suspect, attempts, deaths, doubt_since, in_flight_until, last_fence FROM due
),
told AS (
    INSERT INTO ichido.events
        (message_id, fence, step, at, from_state, to_state, kind, attempts, deaths, doubt_since, in_flight_until, effect)
    SELECT d.message_id, nextval('ichido.fence'), 0, now.at, 'failed', 'queued', 'came_due', d.attempts, d.deaths,
           d.doubt_since, d.in_flight_until, CASE WHEN d.doubt_since IS NULL THEN 'not_done' ELSE 'unknown' END
    FROM due d, now
    WHERE d.state = 'failed'
),
counted AS (
    INSERT INTO ichido.count_deltas (queue, state, delta)
    SELECT d.queue, c.state, sum(c.sign)
    FROM due d, (VALUES ('failed', -1), ('queued', 1)) AS c (state, sign)
    WHERE d.state = 'failed'
    GROUP BY d.queue, c.state
)
SELECT queue, count(*) AS count FROM due GROUP BY queue
