-- Finds the event that put the effect of a message in the doubt that it is in since. Every later event has the same doubt, so fences
-- are bisected, each step with one look-up: a message may have tens of thousands of events.
WITH RECURSIVE newest (fence, doubt) AS (
    SELECT fence, doubt_since FROM ichido.events WHERE message_id = $1 ORDER BY fence DESC, step DESC LIMIT 1
),
half (low, high) AS (
    SELECT CAST(0 AS bigint), n.fence FROM newest n WHERE n.doubt IS NOT NULL
    UNION ALL
    SELECT
        CASE WHEN (SELECT e.doubt_since FROM ichido.events e WHERE e.message_id = $1 AND e.fence <= h.low + (h.high - h.low) / 2
                   ORDER BY e.fence DESC, e.step DESC LIMIT 1) = n.doubt THEN h.low ELSE h.low + (h.high - h.low) / 2 + 1 END,
        CASE WHEN (SELECT e.doubt_since FROM ichido.events e WHERE e.message_id = $1 AND e.fence <= h.low + (h.high - h.low) / 2
                   ORDER BY e.fence DESC, e.step DESC LIMIT 1) = n.doubt THEN h.low + (h.high - h.low) / 2 ELSE h.high END
    FROM half h CROSS JOIN newest n WHERE h.low < h.high
)
SELECT e.message_id, e.fence, e.step, e.claimed_at, e.at, e.from_state, e.to_state, e.kind, e.attempts, e.effect, e.code, e.status,
       e.result_digest, e.receipt, e.excerpt, e.response, e.response_type, e.response_bytes, e.node, e.actor
FROM half h CROSS JOIN ichido.events e
WHERE h.low = h.high AND e.message_id = $1 AND e.fence = h.low AND e.step = 0
