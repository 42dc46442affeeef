-- The audit trail for people: entries with an actor, and those about anything but messages. A worker's entry has neither, and costs
-- nothing here. They are listed newest first: all, of one kind, or of one actor. (The primary key lists those of one subject.)
CREATE INDEX events_audit ON ichido.events (fence, message_id, step)
    WHERE actor IS NOT NULL OR about IS NOT NULL AND kind <> 'keys_sealed';
CREATE INDEX events_audit_kind ON ichido.events (kind, fence, message_id, step)
    WHERE actor IS NOT NULL OR about IS NOT NULL AND kind <> 'keys_sealed';
CREATE INDEX events_audit_actor ON ichido.events (actor, fence, message_id, step) WHERE actor IS NOT NULL;

-- Finds the seal of an entry: the first that ends after its position.
CREATE INDEX seals_until ON ichido.seals (until_position);
