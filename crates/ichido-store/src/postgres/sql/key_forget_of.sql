-- Deletes keys of one identity, a bounded number at a time, except keys in flight and keys that an unfinished message still
-- uses. No other statement finds keys by identity, so there is no index for it: it scans the ledger, whose rows expire.
DELETE FROM ichido.ledger WHERE name IN (
    SELECT l.name FROM ichido.ledger l
    WHERE l.identity = $1 AND (l.lease_until IS NULL OR l.lease_until <= clock_timestamp() + $3 * interval '1 microsecond')
      AND NOT (l.message_id IS NOT NULL
               AND EXISTS (SELECT 1 FROM ichido.messages m WHERE m.id = l.message_id)
               AND NOT EXISTS (SELECT 1 FROM ichido.events e WHERE e.message_id = l.message_id AND e.to_state IN ('sent', 'cancelled')))
    LIMIT $2
    FOR UPDATE OF l SKIP LOCKED)
