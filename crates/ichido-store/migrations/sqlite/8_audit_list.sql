-- The audit trail for people: entries with an actor, and those about anything but messages. A worker's entry has neither, and costs
-- nothing here. They are listed newest first: all, of one kind, or of one actor. (The primary key lists those of one subject.)
CREATE INDEX ichido_events_audit ON ichido_events (fence, message_id, step)
    WHERE actor IS NOT NULL OR about IS NOT NULL AND kind <> 'keys_sealed';
CREATE INDEX ichido_events_audit_kind ON ichido_events (kind, fence, message_id, step)
    WHERE actor IS NOT NULL OR about IS NOT NULL AND kind <> 'keys_sealed';
CREATE INDEX ichido_events_audit_actor ON ichido_events (actor, fence, message_id, step) WHERE actor IS NOT NULL;

-- The seal of such an entry, noted when it is sealed: there are no positions here that would find it. It is not part of the entry, as
-- PostgreSQL's position is not. NULL while it waits, and if a program sealed it that did not know this column.
ALTER TABLE ichido_events ADD COLUMN seal INTEGER;
