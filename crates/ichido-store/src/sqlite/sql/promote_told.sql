-- The end of a failed message's backoff is a transition, so it is in the audit trail. Fences follow ?2, the last one issued.
INSERT INTO ichido_events
    (message_id, fence, step, at, from_state, to_state, kind, attempts, deaths, doubt_since, in_flight_until, effect)
SELECT message_id, ?2 + row_number() OVER (ORDER BY due, message_id), 0, ?3, 'failed', 'queued', 'came_due', attempts, deaths,
       doubt_since, in_flight_until, CASE WHEN doubt_since IS NULL THEN 'not_done' ELSE 'unknown' END
FROM ichido_scheduled
WHERE state = 'failed' AND message_id IN (SELECT unhex(value) FROM json_each(?1))
