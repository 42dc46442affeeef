SELECT e.to_state, e.effect, false AS suspect, e.attempts, e.deaths, e.doubt_since, e.in_flight_until,
       (SELECT max(t.fence) FROM ichido.events t WHERE t.message_id = $1 AND t.claimed_at IS NOT NULL) AS last_fence
FROM ichido.events e
WHERE e.message_id = $1
ORDER BY e.fence DESC, e.step DESC
LIMIT 1
